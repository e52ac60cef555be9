// Limits and names in the options of commands.

/** `env`: number of variables, and characters of all their names and values. */
export const COMMAND_OPTION_LIMITS = {
  cwdCharacters: 4_096,
  argumentCharacters: 131_071,
  env: { variables: 256, characters: 65_536 },
  stdinCharacters: 65_536,
} as const;

/**
 * Variables of a sandbox. `bytes`: of all names and values in UTF-8, below the longest string that
 * Linux gives a program.
 */
export const SANDBOX_VARIABLES = { variables: 256, bytes: 65_536, bodyBytes: 1_048_576 } as const;
/** Variables that Berth sets for each program: a sandbox's variables cannot replace them. */
export const RESERVED_VARIABLE = /^(?:HOME|USER|LOGNAME|SHELL|PWD|TERM|BERTH_.*)$/;

/** Name of a user of a sandbox. */
export const USER_NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,31}$/;
/** Name of an environment variable. */
export const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,255}$/;

/**
 * Limits of processes. `ended`: kept after their end, the oldest beyond it are removed; so they are
 * when the outputs of all together take more than `storedBytes`. `shownCharacters`: of a command or
 * directory in views. `readBytes`: of one stream in a response. `inputBytes`: that wait for the
 * process.
 */
export const PROCESS_LIMITS = {
  live: 256,
  ended: 1_000,
  storedBytes: 2_147_483_648,
  outputBytes: { default: 4_194_304, min: 65_536, max: 67_108_864 },
  readBytes: 262_144,
  inputBytes: 1_048_576,
  inputCharacters: 1_048_576,
  nameCharacters: 64,
  shownCharacters: 256,
  arguments: 1_024,
  limitSeconds: 31_536_000,
  waitMs: 25_000,
} as const;
