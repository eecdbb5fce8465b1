import type { IncomingMessage, ServerResponse } from 'node:http'
import { fileURLToPath } from 'node:url'
import { build, type Rolldown } from 'vite'

/**
 * A page with a bundled script, `page/<name>.js` of this folder, at `/<name>`. React in it is that of developers, which
 * mounts everything twice in StrictMode.
 */
export async function bundlePage(name: string): Promise<BundledPage> {
  const input = fileURLToPath(new URL(`../page/${name}.js`, import.meta.url))
  const built = (await build({
    ...{ configFile: false, logLevel: 'warn', mode: 'development' },
    define: { 'process.env.NODE_ENV': '"development"' },
    build: { write: false, minify: false, modulePreload: false, rolldownOptions: { input } },
  })) as Rolldown.RolldownOutput
  const files = new Map(
    built.output.map((file) => [`/${file.fileName}`, file.type === 'chunk' ? file.code : file.source]),
  )
  const find = (ending: string) => [...files.keys()].find((path) => path.includes(name) && path.endsWith(ending))
  const html = `<!doctype html><html lang="en"><meta charset="utf-8"><title>${name}</title>
    <link rel="stylesheet" href="${find('.css')}"><div id="root"></div><script type="module" src="${find('.js')}"></script>`
  return {
    serve({ url = '/' }, response) {
      const { pathname } = new URL(url, 'http://page')
      const content = pathname === `/${name}` ? html : files.get(pathname)
      if (content === undefined) return false
      response.setHeader('Content-Type', typeOf(pathname))
      response.end(content)
      return true
    },
  }
}

function typeOf(path: string): string {
  return path.endsWith('.js') ? 'text/javascript' : path.endsWith('.css') ? 'text/css' : 'text/html'
}

export interface BundledPage {
  /** Answers when the page, or a part of it, is asked for, and says so. */
  serve(request: IncomingMessage, response: ServerResponse): boolean
}
