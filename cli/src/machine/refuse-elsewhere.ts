// The machine's commands where they cannot run: in the package.
import { UsageError } from '../output/failure.ts';
import type { Action } from '../program/command-spec.ts';

/** @param words the command's, as `keys create` */
export function refuseElsewhere(words: string): Action<never> {
  return () =>
    Promise.reject(
      new UsageError(`berth ${words} runs from a checkout of Berth on the machine of the service: ./berth ${words}`),
    );
}
