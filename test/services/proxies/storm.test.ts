import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { serve } from 'rejoin'
import { expect, onTestFinished, test } from 'vitest'
import { program } from '../../support/paths.ts'
import { shippedConfiguration, startProxy } from '../../support/proxies/proxy.ts'

const rejecting = `
  limit_req_zone $binary_remote_addr zone=opens:1m rate=10r/s;
  server {
    listen 80;
    location / { proxy_pass http://127.0.0.1:4747; }
    location /events { limit_req zone=opens burst=20 nodelay; proxy_pass http://127.0.0.1:4747; }
  }`

test.each([
  ['delays', 'the file that we ship', shippedConfiguration('nginx'), /limit_req of nginx delayed [1-9]\d* streams/],
  ['rejects', 'a configuration of your own', rejecting, /limit_req of nginx delayed 0 streams and rejected [1-9]\d*\./],
])(
  'a storm says that it measures limit_req when nginx %s streams, with %s',
  async (_does, _with, configuration, hint) => {
    const hub = await serve({ port: 0, trustProxy: true })
    onTestFinished(() => hub.close({ withinMs: 0 }))
    const proxy = await startProxy('nginx', Number(new URL(hub.url).port), configuration)
    onTestFinished(() => proxy.stop())
    const flags = ['--readers', '70', '--for', '2s', '--every', '1s', '--away', '1s', '--patience', '30s']
    // Readers that nginx rejects may not be back at the end, which is another status than 0.
    const { stdout } = await promisify(execFile)(process.execPath, [program, 'storm', proxy.url, ...flags]).catch(
      (error: { stdout: string }) => error,
    )
    expect(stdout).toMatch(hint)
  },
)
