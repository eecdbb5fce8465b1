import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { doorOf } from './doors.ts'
import type { Middleware } from './middleware.ts'
import { refuse, refuseMethod } from './refusal.ts'
import { requestTarget } from './request-target.ts'

/**
 * The pages of the program, each at its path, and the scripts and styles that they name.
 *
 * @param pages - the file of each path, such as `{ '/': 'playground.html' }`
 * @param folder - what `npm run build` made; ends in a slash
 */
export function pageFiles(pages: Readonly<Record<string, string>>, folder: URL = builtPages): Middleware {
  // Their names change with what they hold, so there are as many as were built.
  const assets = new Map<string, Promise<Asset>>()

  function load(name: string): Promise<Asset> {
    const known = assets.get(name)
    if (known) return known
    const loading = loadAsset(new URL(`assets/${name}`, folder))
    assets.set(name, loading)
    loading.catch(() => assets.delete(name))
    return loading
  }

  async function answer(request: IncomingMessage, response: ServerResponse, page: string | undefined, name: string) {
    try {
      if (page) sendPage(response, await readFile(new URL(page, folder)))
      else sendAsset(request, response, name, await load(name))
    } catch {
      // Whatever the reason, there is nothing to show under this name.
      refuse(response, 404, 'not-found', 'There is no such page. If it should be there, run npm run build.')
    }
  }

  // Asked for every request, of which few are for a page.
  const doors = new Set(['pages', ...Object.keys(pages).map((url) => doorOf({ url }))])

  return (request, response) => {
    if (!doors.has(doorOf(request))) return false
    const { path } = requestTarget(request)
    const page = Object.hasOwn(pages, path) ? pages[path] : undefined
    // One segment without a second dot, so no path leads out of the folder, to a source map or to a hidden file.
    const [, name] = /^\/pages\/assets\/([\w-]+\.(?:js|css))$/.exec(path) ?? []
    if (!page && !name) return false
    if (request.method !== 'GET' && request.method !== 'HEAD') refuseMethod(response, 'GET')
    else void answer(request, response, page, name ?? '')
    return true
  }
}

const builtPages = new URL('../dist/pages/', import.meta.url)

interface Asset {
  readonly plain: Buffer
  readonly zipped: Buffer
}

async function loadAsset(file: URL): Promise<Asset> {
  const plain = await readFile(file)
  return { plain, zipped: await promisify(gzip)(plain) }
}

function sendPage(response: ServerResponse, body: Buffer): void {
  response.writeHead(200, {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Length': body.length,
    'Content-Security-Policy': policy,
    'Cache-Control': 'no-cache',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
  })
  response.end(body)
}

function sendAsset(request: IncomingMessage, response: ServerResponse, name: string, asset: Asset): void {
  const isZipped = /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))
  const body = isZipped ? asset.zipped : asset.plain
  response.writeHead(200, {
    'Content-Type': `${name.endsWith('.css') ? 'text/css' : 'text/javascript'}; charset=utf-8`,
    'Content-Length': body.length,
    ...(isZipped ? { 'Content-Encoding': 'gzip' } : {}),
    // What is under this name never changes.
    'Cache-Control': 'public, max-age=31536000, immutable',
    Vary: 'Accept-Encoding',
    'X-Content-Type-Options': 'nosniff',
  })
  response.end(body)
}

/** Our own files and nothing else: text that somebody published has no way to become a script. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ')
