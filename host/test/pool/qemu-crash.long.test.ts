// The pool's crash suite with the QEMU driver, on a private host. Needs root, the image and the
// template (`berth test` makes them).
import { sampleOf } from '../../../os/test/long-run.ts';
import { readConfig } from '../../src/config.ts';
import { enterPrivateHost } from '../vm/private-host.ts';
import { slotLeftovers, slotProcesses } from '../network/slots/slot-leftovers.ts';
import { poolCrashSuite } from './crash-suite.ts';

enterPrivateHost();

const { cacheFolder } = readConfig([], process.env);

poolCrashSuite('a host daemon with a pool that is killed, with the QEMU driver,', {
  flags: ['--driver', 'qemu', '--cache-dir', cacheFolder],
  // The test with the fake driver kills at each point.
  pointsOf: (points) => sampleOf(points, 4),
  machines: async () => slotProcesses(),
  leftovers: async () => slotLeftovers(),
});
