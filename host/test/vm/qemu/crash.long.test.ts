// The crash suite with the QEMU driver, on a private host. Needs root, the image and the template
// (`berth test` makes them).
import { readConfig } from '../../../src/config.ts';
import { crashSuite } from '../../daemon/crash-suite.ts';
import { sampleOf } from '../../../../os/test/long-run.ts';
import { enterPrivateHost } from '../private-host.ts';
import { slotLeftovers, slotProcesses } from '../../network/slots/slot-leftovers.ts';

enterPrivateHost();

const { cacheFolder } = readConfig([], process.env);

crashSuite('a host daemon that is killed, with the QEMU driver,', {
  // The pool has its own crash suite.
  flags: ['--driver', 'qemu', '--cache-dir', cacheFolder, '--pool-max', '0'],
  snapshots: true,
  // The test with the fake driver kills at each point that both drivers have.
  pointsOf: (points) => sampleOf(points, 6),
  vmsOnHost: async () => slotProcesses(),
  leftovers: async () => slotLeftovers(),
});
