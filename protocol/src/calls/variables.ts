// The call that gives a guest the variables of a start whose own call has no room for them.
import { COMMAND_OPTION_LIMITS } from '@berth/contract/route/command-options.ts';
import { z } from 'zod';
import { defineCall } from './define.ts';
import { guestRunRequest } from './exec.ts';

/** Drawn by the API for one start. */
export const variablesId = z.string().regex(/^[0-9a-f]{32}$/);

/** Keeps variables in the daemon's memory until one start takes them, for a minute at most. */
export const stageVariables = defineCall({
  name: 'stageVariables',
  target: 'pass-through',
  method: 'PUT',
  path: '/variables/{variablesId}',
  params: z.object({ variablesId }),
  body: z.strictObject({ env: guestRunRequest.shape.env.unwrap() }),
  requestBytes: 6 * COMMAND_OPTION_LIMITS.env.characters + 16_384,
  form: 'json',
  response: z.object({}),
  responseBytes: 1_024,
  deadlineMs: 10_000,
  marginMs: 2_500,
  repeatable: true,
  statuses: { 404: ['variables_unsupported', 'the guest daemon takes no variables for terminals and agents'] },
  since: 10,
});
