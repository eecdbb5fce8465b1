/**
 * `rejoin serve` filled, mostly emptied again, ended in order or by SIGKILL, and opened anew, 200 times on one folder.
 *
 * Events go by `/admin/invalidate`, or because the folder is opened with a window of a few events or a millisecond. After
 * each start every channel is read from several places and compared with what was acknowledged.
 */
import { runOnFolder } from '../disk/folder-run.ts'
import { runReopen } from '../disk/reopen.ts'

await runOnFolder('reopen', 200, runReopen)
