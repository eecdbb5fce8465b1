import { describe, expect, test } from 'vitest'
import { createAdmission } from '../../../src/hub/readers/admission.ts'

const from = (ip: string, subject: string | null = null) => ({ ip, subject, userAgent: null })

describe('a hub lets in', () => {
  test('no more than the hub has room for, and again when somebody leaves', () => {
    const admission = createAdmission({ maxConnections: 2 })
    admission.enter(from('10.0.0.1'))
    admission.enter(from('10.0.0.2'))
    expect(admission.reasonToReject(from('10.0.0.3'), 0)).toBe('connections')
    admission.leave(from('10.0.0.1'))
    expect(admission.reasonToReject(from('10.0.0.3'), 0)).toBeUndefined()
  })

  test('no more than its share from one address, whatever its spelling', () => {
    const admission = createAdmission({ maxPerIp: 1 })
    admission.enter(from('10.0.0.1'))
    expect(admission.reasonToReject(from('::ffff:10.0.0.1'), 0)).toBe('per-ip')
    expect(admission.reasonToReject(from('10.0.0.2'), 0)).toBeUndefined()
  })

  test('no more than its share from one /64 of IPv6', () => {
    const admission = createAdmission({ maxPerIp: 1 })
    admission.enter(from('2001:db8:1:2:aaaa::1'))
    expect(admission.reasonToReject(from('2001:db8:1:2::ffff'), 0)).toBe('per-ip')
    expect(admission.reasonToReject(from('2001:db8:1:3::1'), 0)).toBeUndefined()
  })

  test('no more than its share of one subject, from anywhere', () => {
    const admission = createAdmission({ maxPerSubject: 1 })
    admission.enter(from('10.0.0.1', 'ada'))
    expect(admission.reasonToReject(from('10.0.0.2', 'ada'), 0)).toBe('per-subject')
    expect(admission.reasonToReject(from('10.0.0.2', 'bob'), 0)).toBeUndefined()
  })

  test('no client that reconnects in a loop, until it slows down', () => {
    const admission = createAdmission({ maxOpensPer10s: 5 })
    const attempt = (ip: string, now: number) => {
      admission.countAttempt(from(ip), now)
      return admission.reasonToReject(from(ip), now)
    }
    const verdicts = Array.from({ length: 7 }, (_, n) => attempt('10.0.0.1', 1000 + n * 100))
    expect(verdicts).toEqual([...Array(5).fill(undefined), 'too-rapid', 'too-rapid'])
    expect(attempt('10.0.0.2', 1700)).toBeUndefined()
    expect(attempt('10.0.0.1', 30_000)).toBeUndefined()
  })

  test('every client still, when the clock was set back', () => {
    const admission = createAdmission({ maxOpensPer10s: 5 })
    admission.countAttempt(from('10.0.0.1'), 3_600_000)
    for (let minute = 0; minute < 10; minute += 1) {
      admission.countAttempt(from('10.0.0.1'), minute * 60_000)
      expect(admission.reasonToReject(from('10.0.0.1'), minute * 60_000)).toBeUndefined()
    }
  })

  test('a client with a malformed address, and limits it like any other', () => {
    const admission = createAdmission({ maxPerIp: 1 })
    for (const ip of ['1:2:3:4:5:6:7:8:9::1', '::', ':', 'nonsense', '']) {
      admission.enter(from(ip))
      expect(admission.reasonToReject(from(ip), 0)).toBe('per-ip')
    }
  })
})
