// Environment variables of the tenant's programs.
import { SYSTEM_PATH } from '@berth/os/system-path.ts';
import type { GuestUser } from '../machine/config.ts';

/** Environment variables of a command. */
export function environmentOf(user: GuestUser, folder: string, terminal: string): Record<string, string> {
  return {
    HOME: user.home,
    USER: user.name,
    LOGNAME: user.name,
    SHELL: '/bin/bash',
    PATH: SYSTEM_PATH,
    LANG: 'C.UTF-8',
    TERM: terminal,
    PWD: folder,
  };
}
