import { connect } from '@rejoin/client'
import { createLane } from './lane.js'

// Each tab has its own channel and its own line, so that tabs neither mix nor cut each other.
const tab = Array.from(crypto.getRandomValues(new Uint8Array(4)), (byte) => byte.toString(16).padStart(2, '0')).join('')
const channel = `playground/${tab}`
const publishEveryMs = 500
const cutMs = 5000

const plain = createLane(document.querySelector('#plain'))
const rejoin = createLane(document.querySelector('#rejoin'))
const button = document.querySelector('#cut')

let plainStream
let rejoinStream
let cursor = null
let sent = 0
let publishing = false
/** The cut whose end is still to be told: until when it lasts, and what had been counted before it. */
let cut

showCommands()
if (!document.hidden) open()
document.addEventListener('visibilitychange', () => (document.hidden ? pause() : open()))
button.addEventListener('click', beginCut)
setInterval(publish, publishEveryMs)
setInterval(show, 100)

function open() {
  openPlain()
  openRejoin()
}

/**
 * A hidden tab lets go of its connections, because a browser grants six to a host and forgotten tabs would use them up.
 * It publishes nothing either, so nothing is lost meanwhile.
 */
function pause() {
  cursor = rejoinStream.cursor
  plainStream.close()
  rejoinStream.close()
  plain.away('paused')
  rejoin.away('paused')
}

function openPlain() {
  plainStream = new EventSource(`/playground/plain?tab=${tab}`)
  plainStream.onopen = () => plain.connected()
  plainStream.onmessage = ({ data }) => plain.receive(Number(data))
  plainStream.onerror = () => plain.away('reconnecting')
}

function openRejoin() {
  // As patient as the plain stream, which is told `retry: 1000`: the lanes are to differ in one thing only.
  rejoinStream = connect(`/events/${channel}?tab=${tab}`, { from: cursor, maxRetryMs: 1000 })
  rejoinStream.on('number', ({ id, data }) => {
    if (cursor === null) showReturn(id)
    cursor = id
    rejoin.receive(data)
  })
  rejoinStream.onSync(({ reason }) => tell(`Rejoin was told that events may be gone: ${reason}.`))
  rejoinStream.onState(({ state, nextRetryAt, closeReason }) => {
    if (state === 'connected') rejoin.connected()
    else if (state !== 'closed') rejoin.away('connecting', nextRetryAt)
    else if (closeReason !== 'closed') rejoin.away(closeReason)
  })
}

/** Publishes the next number both ways. It waits for the one before it, which it could overtake otherwise. */
async function publish() {
  const begun = sent > 0 || (plain.isConnected && rejoin.isConnected)
  if (document.hidden || publishing || !begun) return
  publishing = true
  const number = ++sent
  await Promise.all([
    send(plain, number, `/playground/plain?tab=${tab}&n=${number}`),
    send(rejoin, number, `/publish/${channel}?type=number`),
  ])
  publishing = false
  if (number === 1) tell('Both are connected. Cut them and watch what becomes of the numbers.')
}

async function send(lane, number, url) {
  lane.sending(number)
  if (!(await post(url, String(number)))) lane.unsent(number)
}

async function post(url, body) {
  try {
    return (await fetch(url, { method: 'POST', body })).ok
  } catch {
    // The server is gone: to the caller the same as a refusal.
    return false
  }
}

async function beginCut() {
  if (cut && Date.now() < cut.until) return
  cut = { until: Date.now() + cutMs, plainMissing: plain.counts.missing, replayed: rejoin.counts.replayed }
  show()
  if (cursor) showReturn(cursor)
  tell('Both lines are cut. The numbers are published all the same.')
  if (!(await post(`/playground/cut?tab=${tab}&ms=${cutMs}`, ''))) tell('The lines could not be cut.')
}

function show() {
  plain.showCountdown()
  rejoin.showCountdown()
  const leftMs = cut ? Math.max(0, cut.until - Date.now()) : 0
  button.ariaDisabled = String(leftMs > 0)
  button.querySelector('#cut-label').textContent =
    leftMs > 0 ? `Cut for ${(leftMs / 1000).toFixed(1)} s` : 'Cut both for 5 s'
  button.querySelector('#cut-left').style.width = `${(leftMs / cutMs) * 100}%`
  if (cut && leftMs === 0 && isCurrent(plain) && isCurrent(rejoin)) tellResult()
}

function isCurrent(lane) {
  return lane.isConnected && lane.highest === sent
}

function tellResult() {
  const lost = plain.counts.missing - cut.plainMissing
  const replayed = rejoin.counts.replayed - cut.replayed
  cut = undefined
  tell(
    `Plain SSE has lost ${lost} for good, and nothing told it so. ` +
      `Rejoin was sent the ${replayed} it had missed; ${rejoin.counts.missing} are missing.`,
  )
}

function tell(text) {
  document.querySelector('#story').textContent = text
}

function showCommands() {
  const url = location.origin
  document.querySelector('#try-watch').textContent = `curl -N ${url}/events/${channel}`
  document.querySelector('#try-publish').textContent = `curl -d hello ${url}/publish/demo`
}

/** Shown for the first event and for the last one before a cut: an id that returns from somewhere. */
function showReturn(id) {
  document.querySelector('#try-return').textContent =
    `curl -N -H 'Last-Event-ID: ${id}' ${location.origin}/events/${channel}`
}
