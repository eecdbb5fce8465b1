/**
 * The folder of `rejoin serve` copied, and the copy put back, also over the file in use, or used beside the original, 100 times.
 *
 * Every id that was acknowledged is known to the run. Ids of what the folder has lost have to be told, at once and after any
 * number of new events; all others have to go on without a gap. No id is given out twice.
 */
import { runOnFolder } from '../disk/folder-run.ts'
import { runRestore } from '../disk/restore.ts'

await runOnFolder('restore', 100, runRestore)
