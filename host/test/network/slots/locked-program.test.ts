// Output of the tools that make the network: complete at any length, or a clear error.
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { runTool } from '../../../src/network/slots/locked-program.ts';
import { NetworkError } from '../../../src/network/slots/slot.ts';

test('a listing of many routes is returned whole', async () => {
  const listing = await runTool('Listing', ['sh', '-c', 'head -c 3000000 /dev/zero | tr "\\0" x; printf end']);
  assert.equal(listing.length, 3_000_003);
  assert.ok(listing.endsWith('end'));
});

test('a listing that is too long is refused, not cut', async () => {
  await assert.rejects(
    runTool('Listing', ['sh', '-c', 'head -c 17000000 /dev/zero | tr "\\0" x']),
    (error) => error instanceof NetworkError && /more than \d+ characters/.test(error.message),
  );
});
