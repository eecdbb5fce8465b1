import { readFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { RejoinError } from '@rejoin/protocol'
import type { Result, Route } from './routes.ts'

/**
 * The pages of the program, each at its path, with their scripts and styles.
 *
 * @param pages - the file of each path, such as `{ '/': 'playground.html' }`
 * @param folder - the output of `npm run build`; ends in a slash
 */
export function pageRoutes(pages: Readonly<Record<string, string>>, folder: URL = builtPages): Route[] {
  // At most one entry for each built file. Readers that do not take a file share its bytes.
  const files = new Map<string, Promise<File>>()

  function load(name: string): Promise<File> {
    const known = files.get(name)
    if (known) return known
    const loading = loadFile(new URL(name, folder))
    files.set(name, loading)
    loading.catch(() => files.delete(name))
    return loading
  }

  const page = ([path, file]: readonly [string, string]): Route => ({
    method: 'GET',
    path,
    open: 'to-all',
    handle: async () => pageResult((await orNotFound(load(file))).plain),
  })

  const asset: Route = {
    method: 'GET',
    path: '/pages/assets/*',
    open: 'to-all',
    async handle({ request, path }) {
      // One segment with one dot, so no path leads out of the folder, to a source map or to a hidden file.
      const [, name] = /^\/pages\/assets\/([\w-]+\.(?:js|css))$/.exec(path) ?? []
      if (name === undefined) throw notFound()
      return assetResult(request, name, await orNotFound(load(`assets/${name}`)))
    },
  }

  const listed = Object.entries(pages)
  return listed.length === 0 ? [] : [...listed.map(page), asset]
}

const builtPages = new URL('../../dist/pages/', import.meta.url)

interface File {
  readonly plain: Buffer
  readonly zipped: Buffer
}

async function loadFile(file: URL): Promise<File> {
  const plain = await readFile(file)
  return { plain, zipped: await promisify(gzip)(plain) }
}

/** Turns any failure to load into "not found". */
async function orNotFound<Content>(content: Promise<Content>): Promise<Content> {
  try {
    return await content
  } catch (cause) {
    throw notFound(cause)
  }
}

function notFound(cause?: unknown): RejoinError {
  return new RejoinError('There is no such page. If it should be there, run npm run build.', {
    code: 'not-found',
    cause,
  })
}

function pageResult(body: Buffer): Result {
  return {
    status: 200,
    body,
    headers: {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': policy,
      'Cache-Control': 'no-cache',
      'Referrer-Policy': 'no-referrer',
    },
  }
}

function assetResult(request: IncomingMessage, name: string, asset: File): Result {
  const isZipped = /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))
  return {
    status: 200,
    body: isZipped ? asset.zipped : asset.plain,
    headers: {
      'Content-Type': `${name.endsWith('.css') ? 'text/css' : 'text/javascript'}; charset=utf-8`,
      ...(isZipped && { 'Content-Encoding': 'gzip' }),
      // The content under this name never changes.
      'Cache-Control': 'public, max-age=31536000, immutable',
      Vary: 'Accept-Encoding',
    },
  }
}

/** Allows our own files only, so that published text can never run as a script. */
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
