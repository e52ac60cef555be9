// Limits and names in the options of commands.

/** `env`: number of variables, and characters of all their names and values. */
export const COMMAND_OPTION_LIMITS = {
  cwdCharacters: 4_096,
  env: { variables: 256, characters: 65_536 },
  stdinCharacters: 65_536,
} as const;

/** Name of a user of a sandbox. */
export const USER_NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,31}$/;
/** Name of an environment variable. */
export const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,255}$/;
