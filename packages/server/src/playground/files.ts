import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import type { Middleware } from '../middleware.ts'
import { refuse, refuseMethod } from '../refusal.ts'
import { requestTarget } from '../request-target.ts'

/** The page at `/`, its own files, and the modules of `@rejoin/client` that it runs: the ones that are published. */
export function playgroundFiles(folders: Folders = builtFolders): Middleware {
  const html = readFileSync(new URL('index.html', folders.playground))
  const policy = contentSecurityPolicy(html.toString())

  return (request, response, next) => {
    const { path } = requestTarget(request)
    const file = locate(path, folders)
    if (path !== '/' && !file) {
      next()
    } else if (request.method !== 'GET' && request.method !== 'HEAD') {
      refuseMethod(response, 'GET')
    } else if (!file) {
      send(response, html, { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': policy })
    } else {
      const type = path.endsWith('.css') ? 'text/css' : 'text/javascript'
      readFile(file).then(
        (body) => send(response, body, { 'Content-Type': `${type}; charset=utf-8` }),
        // Whatever the reason, there is nothing to show under this name.
        () => refuse(response, 404, 'not-found', `There is no file ${path}. If it should be there, run npm run build.`),
      )
    }
  }
}

/** Where the files stand; each URL ends in a slash. */
export interface Folders {
  playground: URL
  client: URL
  protocol: URL
}

const builtFolders: Folders = {
  playground: new URL('../../page/', import.meta.url),
  client: new URL('.', import.meta.resolve('@rejoin/client')),
  protocol: new URL('.', import.meta.resolve('@rejoin/protocol')),
}

/**
 * The file a path stands for, if it can stand for one. A segment has no dot and no percent sign, so no path leads out
 * of its folder, to a source map or to a hidden file.
 */
function locate(path: string, folders: Folders): URL | undefined {
  const [, folder, file] =
    /^\/(playground|client|protocol)\/((?:[a-z0-9-]+\/)*[a-z0-9-]+\.(?:js|css))$/.exec(path) ?? []
  return folder && file ? new URL(file, folders[folder as keyof Folders]) : undefined
}

function send(response: ServerResponse, body: Buffer, headers: Record<string, string>): void {
  response.writeHead(200, {
    'Content-Length': body.length,
    'Cache-Control': 'no-cache',
    'X-Content-Type-Options': 'nosniff',
    ...headers,
  })
  response.end(body)
}

/** Our own files and one inline script, the import map, which is named by its hash because it cannot be a file. */
function contentSecurityPolicy(html: string): string {
  const importMap = /<script type="importmap">([\s\S]*?)<\/script>/.exec(html)?.[1] ?? ''
  const hash = createHash('sha256').update(importMap).digest('base64')
  return [
    "default-src 'none'",
    `script-src 'self' 'sha256-${hash}'`,
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ')
}
