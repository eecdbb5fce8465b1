import { createElement } from 'react'
import { expect, test, vi } from 'vitest'
import { ConnectionStatus, useEventStream } from '../../src/react/index.ts'
import { useDocument } from '../support/document.ts'
import { render } from '../support/react.ts'
import { hello, message } from '../support/scripted-server.ts'
import { deferred, server, useStage } from '../support/stage.ts'

useStage()
useDocument()

const statusIn = (element: Element) => element.querySelector('.rejoin-status')?.getAttribute('data-status')

test('a live stream is a dot with a name, and a cut is a countdown that is said once', async () => {
  const { element } = await render(createElement(ConnectionStatus, { source: server.url }))
  const visit = await server.stream()
  visit.send(...hello())
  await expect.poll(() => statusIn(element)).toBe('live')
  expect(element.querySelector('.rejoin-status-dot')?.getAttribute('aria-label')).toBe('Live')
  visit.cut()
  ;(await server.visit()).answer(503, { 'retry-after': '60' })
  const text = () => element.querySelector('.rejoin-status-text')?.textContent
  await expect.poll(text).toMatch(/^The server is busy\. Next attempt in \d\d s…$/)
  expect(statusIn(element)).toBe('overloaded')
  expect(element.querySelector('[role=status]')?.textContent).toBe('The server is busy.')
  element.querySelector('button')?.click()
  ;(await server.stream()).send(...hello())
  await expect.poll(() => statusIn(element)).toBe('live')
})

test('the button opens a stream again that the server has rejected', async () => {
  const { element } = await render(createElement(ConnectionStatus, { source: server.url }))
  ;(await server.visit()).answer(200, { 'content-type': 'text/html' })
  await expect.poll(() => statusIn(element)).toBe('wrongType')
  element.querySelector('button')?.click()
  ;(await server.stream()).send(...hello())
  await expect.poll(() => statusIn(element)).toBe('live')
})

test('the button keeps the keyboard focus until the stream is live again', async () => {
  const { element } = await render(createElement(ConnectionStatus, { source: server.url }))
  ;(await server.visit()).answer(503, { 'retry-after': '60' })
  await expect.poll(() => statusIn(element)).toBe('overloaded')
  const button = element.querySelector('button')
  button?.focus()
  button?.click()
  const second = await server.visit()
  await expect.poll(() => statusIn(element)).toBe('connecting')
  expect(document.activeElement).toBe(button)
  second.answer(401)
  await expect.poll(() => button?.textContent).toBe('Sign in')
  expect(document.activeElement).toBe(button)
})

test('a token function that fails shows that, and offers a sign-in', async () => {
  vi.spyOn(console, 'error').mockReturnValue()
  let token: () => string = () => {
    throw new Error('The session is over.')
  }
  function Page() {
    useEventStream(server.url, { identity: 'anna', token: () => token() })
    const onSignIn = async () => {
      token = () => 'new'
    }
    return createElement(ConnectionStatus, { source: server.url, onSignIn })
  }
  const { element } = await render(createElement(Page))
  await expect.poll(() => statusIn(element)).toBe('signInFailed')
  const button = element.querySelector('button')
  expect(button?.textContent).toBe('Sign in')
  button?.click()
  const visit = await server.stream()
  expect(visit.headers.authorization).toBe('Bearer new')
  visit.send(...hello())
  await expect.poll(() => statusIn(element)).toBe('live')
})

test('after a login the same stream goes on, at its cursor', async () => {
  const login = deferred()
  let token = 'old'
  function Page() {
    const { value } = useEventStream<{ message: number }, number>(server.url, {
      token: () => token,
      initial: 0,
      reduce: (sum, { data }) => sum + data,
    })
    const onSignIn = () => login.promise
    return createElement('p', null, `sum ${value} `, createElement(ConnectionStatus, { source: server.url, onSignIn }))
  }
  const { element } = await render(createElement(Page))
  const visit = await server.stream()
  visit.send(...hello())
  visit.send(...message('e1', 1))
  await expect.poll(() => element.textContent).toContain('sum 1')
  visit.send('event: close', 'data: {"reason":"token-expired"}')
  visit.end()
  ;(await server.visit()).answer(401)
  await expect.poll(() => statusIn(element)).toBe('signedOut')
  const visits = server.visits()
  element.querySelector('button')?.click()
  token = 'new'
  login.resolve()
  const next = await server.stream()
  expect(next.headers).toMatchObject({ authorization: 'Bearer new', 'last-event-id': 'e1' })
  expect(server.visits()).toBe(visits + 1)
  next.send(...message('e2', 2))
  await expect.poll(() => element.textContent).toContain('sum 3')
})
