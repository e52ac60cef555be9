// The health check.
import { z } from 'zod';
import { defineRoute } from './route/route.ts';

export const SERVICE_NAME = 'berth';

export const getHealth = defineRoute({
  name: 'getHealth',
  summary: 'Says that the service answers',
  method: 'GET',
  path: '/health',
  auth: [],
  permission: null,
  request: {},
  response: { status: 200, body: z.strictObject({ ok: z.literal(true), service: z.literal(SERVICE_NAME) }) },
  errors: [],
  activity: null,
  // Outside /v1, so with a server of its own in a document, which generators of clients pass over:
  // they would call it where it is not.
  published: false,
  example: { answer: { ok: true, service: SERVICE_NAME } },
});
