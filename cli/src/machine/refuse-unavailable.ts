// Rejects host commands in the npm package.
import { UsageError } from '../output/failure.ts';
import type { Action } from '../program/command-spec.ts';

/** @param words words of the command, such as `keys create` */
export function refuseElsewhere(words: string): Action<never> {
  return () =>
    Promise.reject(
      new UsageError(
        `berth ${words} is available only in a checkout of Berth on the host of the service: ./berth ${words}`,
      ),
    );
}
