// Options that commands and processes share.
import { z } from 'zod';
import { COMMAND_OPTION_LIMITS, USER_NAME, VARIABLE_NAME } from '../route/command-options.ts';
import { text } from '../route/text.ts';

const { variables, characters } = COMMAND_OPTION_LIMITS.env;

const env = z
  .record(
    z.string().regex(VARIABLE_NAME, 'must be letters, digits and _, and not start with a digit'),
    text(0, characters),
  )
  .check(({ value, issues }) => {
    const all = Object.entries(value);
    const length = all.reduce((sum, [name, content]) => sum + name.length + content.length, 0);
    const message =
      all.length > variables
        ? `must have at most ${variables} variables, has ${all.length}`
        : `must have at most ${characters} characters in all names and values, has ${length}`;
    if (all.length > variables || length > characters) issues.push({ code: 'custom', input: value, message });
  })
  .meta({
    maxProperties: variables,
    description:
      `Environment variables, in addition to those of every command; at most ${variables} with together ` +
      `${characters} characters.`,
  });

export const commandOptions = {
  cwd: text(1, COMMAND_OPTION_LIMITS.cwdCharacters)
    .optional()
    .describe('Working directory, by default /code. A relative path is relative to /code.'),
  env: env.optional(),
  user: z
    .string()
    .regex(USER_NAME, 'must be the name of a user of the sandbox')
    .optional()
    .describe('User that runs the command, by default the user of the sandbox; root for all permissions.'),
};
