// Environment variables of the tenant's programs.
import { SYSTEM_PATH } from '@berth/os/system-path.ts';
import type { GuestUser } from '../machine/config.ts';

/** Environment variables of a command. PATH is the one of image/recipe/root/etc/profile.d. */
export function environmentOf(user: GuestUser, folder: string, terminal: string): Record<string, string> {
  return {
    HOME: user.home,
    USER: user.name,
    LOGNAME: user.name,
    SHELL: '/bin/bash',
    PATH: `${user.home}/.local/bin:${SYSTEM_PATH}`,
    LANG: 'C.UTF-8',
    TERM: terminal,
    PWD: folder,
  };
}

/** Values by name, of `NAME=VALUE`. */
export function variablesOf(env: readonly string[] = []): Record<string, string> {
  return Object.fromEntries(
    env.map((variable) => [variable.slice(0, variable.indexOf('=')), variable.slice(variable.indexOf('=') + 1)]),
  );
}
