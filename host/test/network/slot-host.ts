// A host daemon's network and nothing else, as a process of the tests that can be killed at any
// moment. Run as a program: `slot-host.ts OPTIONS CLAIMS` prepares, claims that many slots and then
// holds them, claiming and releasing one more over and over.
import { createNetwork } from '../../src/network/network.ts';
import type { NetworkOptions } from '../../src/network/dns/network-options.ts';

const network = createNetwork(JSON.parse(process.argv[2] ?? '') as NetworkOptions);
const claims = Number(process.argv[3]);
const never = new AbortController().signal;

process.on('disconnect', () => process.exit(0));
process.send?.('started');
await network.prepare();
const held = await Promise.all(Array.from({ length: claims }, (_, index) => network.claim(`sbx_held${index}`, never)));
process.send?.(held.map((slot) => slot.number));
for (;;) {
  const slot = await network.claim('sbx_passing', never);
  await network.release(slot.number);
}
