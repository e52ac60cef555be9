// Only the network of a host daemon, as a separate process that tests can kill at any moment. As a
// program: `slot-host.ts OPTIONS CLAIMS` prepares, claims that many slots and holds them, while it
// claims and releases one more in a loop.
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
