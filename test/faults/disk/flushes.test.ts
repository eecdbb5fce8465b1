import { expect, test } from 'vitest'
import { judgeFlushes } from './flushes.ts'

const opened = '9 openat(AT_FDCWD</>, "/log/data.mdb", O_WRONLY|O_DSYNC|O_CLOEXEC) = 21</log/data.mdb>'
const asked = '9 read(25<socket:[1]>, "POST /publish/a HTTP/1.1\\r\\nhost: 127"..., 65536) = 246'
const pages = '10 writev(20</log/data.mdb>, [{iov_base="\\3\\0", iov_len=4096}], 1) = 4096'
const flushed = '10 fdatasync(20</log/data.mdb>) = 0'
const rooted = '10 pwrite64(21</log/data.mdb>, "\\0\\0"..., 128, 40) = 128'
const answered = '9 writev(25<socket:[1]>, [{iov_base="HTTP/1.1 201 Created\\r\\n"..., iov_len=236}], 1) = 236'

test('a publish that is answered after its pages and its root are on the disk is in order', () => {
  const trace = [opened, asked, pages, flushed, rooted, answered, asked, pages, flushed, rooted, answered]
  expect(judgeFlushes(trace.join('\n'))).toEqual({ answers: 2, early: [] })
})

test.each([
  ['without a flush', [opened, asked, pages, answered]],
  ['before the root is written', [opened, asked, pages, flushed, answered, rooted]],
  ['when the root is not written through', [asked, pages, flushed, rooted, answered]],
  ['on the flush of the publish before', [opened, asked, pages, flushed, rooted, answered, asked, pages, answered]],
  ['after a flush that failed', [opened, asked, pages, flushed.replace('= 0', '= -1 EIO'), rooted, answered]],
  ['after pages that nobody flushed', [opened, asked, flushed, pages, rooted, answered]],
])('a publish that is answered %s is found', (_, trace) => {
  expect(judgeFlushes(trace.join('\n')).early).toHaveLength(1)
})

test('a flush that is under way does not count, also when the tracer tells of it in two parts', () => {
  const begun = '10 fdatasync(20</log/data.mdb> <unfinished ...>'
  const done = '10 <... fdatasync resumed>) = 0'
  expect(judgeFlushes([opened, asked, pages, begun, done, rooted, answered].join('\n')).early).toEqual([])
  expect(judgeFlushes([opened, asked, pages, begun, answered, done, rooted].join('\n')).early).toHaveLength(1)
})
