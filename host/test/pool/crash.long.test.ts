// The pool's crash suite with the fake driver.
import { findMarked } from '../../src/vm/fake/find.ts';
import { poolCrashSuite } from './crash-suite.ts';

poolCrashSuite('a host daemon with a pool that is killed, with the fake driver,', {
  flags: ['--driver', 'fake'],
  // Each VM has two processes: bwrap outside and inside.
  machines: async (instanceId) => [
    ...new Set((await findMarked((mark) => mark.instanceId === instanceId)).map(({ mark }) => mark.folder)),
  ],
  leftovers: async () => [],
});
