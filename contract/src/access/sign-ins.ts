// Sign-ins of the caller: browsers and devices that hold a sign-in session.
import { z } from 'zod';
import { pageFields, pageQuery } from '../route/page.ts';
import { defineRoute } from '../route/route.ts';
import { idText, nameInPath, timestamp } from '../route/text.ts';

const signIn = z
  .strictObject({
    id: idText,
    userAgent: z.string().nullable().describe('`User-Agent` of the browser or program that signed in.'),
    address: z.string().nullable().describe('Network address at the sign-in.'),
    createdAt: timestamp,
    lastUsedAt: timestamp.describe('Accurate to one minute.'),
    expiresAt: timestamp.describe('Without another refresh.'),
    current: z.boolean().describe('Whether this request uses the sign-in.'),
  })
  .meta({ id: 'SignIn', description: 'A sign-in of the caller in a browser or on a device.' });
export type SignInView = z.infer<typeof signIn>;

export const listSignIns = defineRoute({
  name: 'listSignIns',
  summary: "Lists the caller's sign-ins, newest first, without ended and expired ones",
  method: 'GET',
  path: '/v1/me/sign-ins',
  auth: ['session'],
  permission: null,
  request: { query: pageQuery },
  response: { status: 200, body: z.strictObject({ signIns: z.array(signIn), ...pageFields }) },
  errors: [],
  activity: null,
  published: false,
});

export const endSignIn = defineRoute({
  name: 'endSignIn',
  summary: 'Ends a sign-in of the caller with its access tokens, immediately. It may be the current one',
  method: 'DELETE',
  path: '/v1/me/sign-ins/{signInId}',
  auth: ['session'],
  permission: null,
  request: { params: z.object({ signInId: nameInPath }) },
  response: { status: 200, body: z.strictObject({ signIn }) },
  errors: ['sign_in_not_found'],
  activity: 'sign_in_ended',
  published: false,
});

export const endOtherSignIns = defineRoute({
  name: 'endOtherSignIns',
  summary: 'Ends all sign-ins of the caller except the current one, and approvals of devices not signed in yet',
  method: 'DELETE',
  path: '/v1/me/sign-ins',
  auth: ['session'],
  permission: null,
  request: {},
  response: { status: 200, body: z.strictObject({ ended: z.int().min(0).describe('Number of ended sign-ins.') }) },
  errors: [],
  activity: 'sign_in_ended',
  published: false,
});
