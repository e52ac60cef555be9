// The crash suite with the fake driver.
import { findMarked } from '../../src/vm/fake/find.ts';
import { crashSuite } from './crash-suite.ts';

crashSuite('a host daemon that is killed, with the fake driver,', {
  // The pool has its own crash suite.
  flags: ['--driver', 'fake', '--pool-max', '0', '--encrypt-disks', '1'],
  snapshots: false,
  pointsOf: (points) => points,
  // Each VM has two processes: bwrap outside and inside.
  vmsOnHost: async (instanceId) => [
    ...new Set((await findMarked((mark) => mark.instanceId === instanceId)).map(({ mark }) => mark.folder)),
  ],
  leftovers: async () => [],
});
