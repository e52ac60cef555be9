// The health check.
import { z } from 'zod';
import { defineRoute } from './route/route.ts';

export const SERVICE_NAME = 'berth';

export const getHealth = defineRoute({
  name: 'getHealth',
  summary: 'Reports that the service is up',
  method: 'GET',
  path: '/health',
  auth: [],
  permission: null,
  request: {},
  response: { status: 200, body: z.strictObject({ ok: z.literal(true), service: z.literal(SERVICE_NAME) }) },
  errors: [],
  activity: null,
  // Outside /v1, so it needs a separate `servers` entry, which client generators ignore: generated
  // clients would call the wrong URL.
  published: false,
  example: { answer: { ok: true, service: SERVICE_NAME } },
});
