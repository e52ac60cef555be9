// Environment variables of a sandbox, for every program that the service starts in it. Beyond the
// spec. Values are never returned.
import { z } from 'zod';
import {
  COMMAND_OPTION_LIMITS,
  RESERVED_VARIABLE,
  SANDBOX_VARIABLES,
  VARIABLE_NAME,
} from '../route/command-options.ts';
import { defineRoute } from '../route/route.ts';
import { text, timestamp } from '../route/text.ts';
import { sandboxParams } from './sandboxes.ts';

const { variables: most, bytes } = SANDBOX_VARIABLES;

const variableName = z
  .string()
  .regex(VARIABLE_NAME, 'must be letters, digits and _, and not start with a digit')
  .refine((name) => !RESERVED_VARIABLE.test(name), 'is set by the service; choose another name');
const value = text(0, COMMAND_OPTION_LIMITS.env.characters);
const limits = { maxProperties: most };

/** Values by name. */
const variables = z
  .record(variableName, value)
  .meta({ ...limits, description: `At most ${most} values by name, with together ${bytes} bytes of UTF-8.` });
const changes = z.record(variableName, value.nullable()).meta({
  ...limits,
  description: `Values by name; null removes the variable. Afterwards at most ${most} with together ${bytes} bytes.`,
});

const sandboxVariable = z
  .strictObject({ name: z.string(), updatedAt: timestamp.describe('Time of the last set.') })
  .meta({ id: 'SandboxVariable', description: 'A variable of a sandbox. Its value cannot be read.' });

const answer = z.strictObject({ variables: z.array(sandboxVariable).describe('In the order of the names.') });
const example = { variables: [{ name: 'DATABASE_URL', updatedAt: '2026-11-22T10:00:00.000Z' }] };

export const listVariables = defineRoute({
  name: 'listVariables',
  summary: "Lists the names of a sandbox's environment variables",
  method: 'GET',
  path: '/v1/sandboxes/{sandboxId}/variables',
  auth: ['session', 'api_key'],
  permission: 'sandbox.read',
  request: { params: sandboxParams },
  response: { status: 200, body: answer },
  errors: [],
  activity: null,
  published: true,
  example: { answer: example },
});

const changing = {
  path: '/v1/sandboxes/{sandboxId}/variables',
  auth: ['session', 'api_key'],
  permission: 'sandbox.variables.write',
  bodyBytes: SANDBOX_VARIABLES.bodyBytes,
  response: { status: 200, body: answer },
  errors: ['sandbox_state_conflict'],
  activity: 'sandbox_variables_changed',
  published: true,
} as const;

export const replaceVariables = defineRoute({
  ...changing,
  name: 'replaceVariables',
  summary: "Replaces a sandbox's environment variables, for programs that start from now on. Wakes nothing",
  method: 'PUT',
  request: { params: sandboxParams, body: z.strictObject({ variables }) },
  example: { body: { variables: { DATABASE_URL: 'postgres://ada@db.example.com/ada' } }, answer: example },
});

export const updateVariables = defineRoute({
  ...changing,
  name: 'updateVariables',
  summary: "Sets and removes a sandbox's environment variables, for programs that start from now on. Wakes nothing",
  method: 'PATCH',
  request: { params: sandboxParams, body: z.strictObject({ variables: changes }) },
  example: {
    body: { variables: { DATABASE_URL: 'postgres://ada@db.example.com/ada', OLD_KEY: null } },
    answer: example,
  },
});
