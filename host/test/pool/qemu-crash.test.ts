// The pool's crash suite with the QEMU driver, on a private host. Needs root, the image and the
// template (`berth test` makes them).
import { readConfig } from '../../src/config.ts';
import { enterPrivateMachine } from '../vm/private-machine.ts';
import { slotLeftovers, slotProcesses } from '../network/slots/slot-leftovers.ts';
import { poolCrashSuite } from './crash-suite.ts';

enterPrivateMachine();

const { cacheFolder } = readConfig([], process.env);

poolCrashSuite('a host daemon with a pool that is killed, with the QEMU driver,', {
  flags: ['--driver', 'qemu', '--cache-dir', cacheFolder],
  machines: async () => slotProcesses(),
  leftovers: async () => slotLeftovers(),
});
