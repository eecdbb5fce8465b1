import { cores } from '../processes/cores.ts'
import { findNginx, startNginx } from './nginx.ts'
import type { Load, Subject } from './subject.ts'

export const nchanModule = findNginx()?.nchan

/** nginx with nchan, one worker. It keeps as much of the past as `memoryLog()` does. `load` publishes to it over HTTP. */
export async function startNchan(load: Load): Promise<Subject> {
  if (!nchanModule) throw new Error('nchan is not present: it comes with the Debian package libnginx-mod-nchan')
  const nginx = await startNginx({ core: cores.server, modules: [nchanModule], server })
  return {
    name: 'nchan',
    port: nginx.port,
    tls: false,
    pids: [nginx.workerPid],
    readPath: '/events/shared',
    publishPath: '/publish/shared',
    publish: ({ perSecond, eventBytes }) =>
      load.call('publish', { port: nginx.port, path: '/publish/shared', perSecond, eventBytes, stamp: 'due' }),
    stopPublishing: () => load.call('stopPublishing', undefined),
    stop: nginx.stop,
  }
}

const server = `
    location ~ ^/publish/(.+)$ {
      nchan_publisher;
      nchan_channel_id $1;
      nchan_message_buffer_length 1000;
      nchan_message_timeout 5m;
    }
    location ~ ^/events/(.+)$ {
      nchan_subscriber eventsource;
      nchan_channel_id $1;
      nchan_subscriber_first_message newest;
    }
`
