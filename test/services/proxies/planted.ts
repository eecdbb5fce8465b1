import type { ProxyKindName } from '../../support/proxies/kinds.ts'
import { shippedConfiguration } from '../../support/proxies/proxy.ts'

/** A configuration with one mistake in it. */
export interface Planted {
  readonly proxy: ProxyKindName
  readonly configuration: string
}

/** The name that the doctor gives the fault, and a configuration of a real proxy that has it and no other. */
export const planted: Readonly<Record<string, Planted>> = {
  stream: nginx('proxy_pass http://127.0.0.1:4747; proxy_ignore_headers X-Accel-Buffering;'),
  'header-cursor': haproxy('default_backend hub', 'default_backend hub\n    http-request del-header Last-Event-ID'),
  'query-cursor': nginx('proxy_pass http://127.0.0.1:4747$uri;'),
  compression: nginx(
    'proxy_pass http://127.0.0.1:4747; gzip on; gzip_proxied any; gzip_min_length 0; gzip_types text/event-stream;',
  ),
  caching: {
    proxy: 'varnish',
    configuration: `vcl 4.1;
      backend hub { .host = "127.0.0.1"; .port = "4747"; }
      sub vcl_recv { if (req.method == "GET") { return (hash); } }
      sub vcl_backend_response { unset beresp.http.Vary; set beresp.ttl = 60s; return (deliver); }`,
  },
  silence: haproxy('timeout server 75s', 'timeout server 2s'),
  heartbeats: nginx(
    "proxy_pass http://127.0.0.1:4747; sub_filter ': hb' ''; sub_filter_once off; sub_filter_types text/event-stream;",
  ),
  ids: nginx(
    "proxy_pass http://127.0.0.1:4747; sub_filter 'id: ' 'id: x'; sub_filter_once off; sub_filter_types text/event-stream;",
  ),
  cors: {
    proxy: 'caddy',
    configuration: ':80 {\n\treverse_proxy 127.0.0.1:4747 {\n\t\theader_down -Access-Control-Allow-Origin\n\t}\n}\n',
  },
  redirect: {
    proxy: 'nginx',
    configuration: `server {
      listen 80;
      location /events/ { return 307 /hub$request_uri; }
      location /hub/ { proxy_pass http://127.0.0.1:4747/; }
    }`,
  },
}

function nginx(lines: string): Planted {
  return { proxy: 'nginx', configuration: `server {\n  listen 80;\n  location / { ${lines} }\n}\n` }
}

function haproxy(good: string, bad: string): Planted {
  return { proxy: 'haproxy', configuration: shippedConfiguration('haproxy').replace(good, bad) }
}
