// Options of a program, however it is started.
export interface ProgramOptions {
  cwd?: string;
  env?: Record<string, string>;
  user?: string;
}

/** Returns these options alone. */
export function programOptions({ cwd, env, user }: ProgramOptions): ProgramOptions {
  return {
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env }),
    ...(user === undefined ? {} : { user }),
  };
}
