import { json, type PathDocs, refusalDoc } from './openapi.ts'

/** What the access rules answer, for `openapi.json`; there only where there are any. */
export const ticketPath: PathDocs = {
  '/ticket': {
    post: {
      summary: 'A short-lived ticket for one stream, in exchange for the token that this request carries',
      description: 'For native EventSource, which can send no header: `/events/<channel>?ticket=…`.',
      answers: {
        201: json('The ticket, good for one use.', {
          type: 'object',
          required: ['ticket', 'expiresAt'],
          properties: { ticket: { type: 'string' }, expiresAt: { type: 'number', description: 'ms since 1970' } },
        }),
        ...{ 401: refusalDoc, 503: refusalDoc },
      },
    },
  },
}
