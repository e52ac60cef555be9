// Grouping of addresses for rate limits.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { addressBlock } from '../../../src/rules/access/address-block.ts';

const BLOCKS: [address: string, block: string][] = [
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['::FFFF:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:0db8:0001:0002::', '2001:db8:1:2::/64'],
  ['2001:DB8:1:2::ffff', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['2001:db8::1:0:0:0:1', '2001:db8:0:1::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['64:ff9b::192.0.2.7', '64:ff9b:0:0::/64'],
  ['1::192.0.2.7', '1:0:0:0::/64'],
  ['192.0.2.7:5123', '192.0.2.7'],
  ['[2001:db8:1:2:3:4:5:6]:5123', '2001:db8:1:2::/64'],
  ['[2001:db8:1:2::1]', '2001:db8:1:2::/64'],
  ['[::ffff:192.0.2.7]:5123', '192.0.2.7'],
  ['no address', 'no address'],
];

for (const [address, block] of BLOCKS) {
  test(`${address} is counted as ${block}`, () => {
    assert.equal(addressBlock(address), block);
  });
}

test('addresses of one /64 share a block, those of two do not, whatever the notation', () => {
  const group = fc.integer({ min: 0, max: 0xffff });
  fc.assert(
    fc.property(
      fc.array(group, { minLength: 8, maxLength: 8 }),
      fc.array(group, { minLength: 4, maxLength: 4 }),
      (groups, others) => {
        const full = groups.map((value) => value.toString(16).padStart(4, '0')).join(':');
        const short = new URL(`http://[${full}]/`).hostname.slice(1, -1);
        assert.equal(addressBlock(short), addressBlock(full), `${short} and ${full}`);
        const neighbour = [...groups.slice(0, 4), ...others].map((value) => value.toString(16)).join(':');
        assert.equal(addressBlock(neighbour), addressBlock(full));
        const stranger = [...groups.slice(0, 3), ((groups[3] ?? 0) + 1) & 0xffff, ...others]
          .map((value) => value.toString(16))
          .join(':');
        assert.notEqual(addressBlock(stranger), addressBlock(full));
      },
    ),
  );
});

test('arbitrary text from a proxy is counted by its prefix', () => {
  assert.equal(addressBlock('x'.repeat(10_000)).length, 64);
  fc.assert(fc.property(fc.string({ maxLength: 200 }), (text) => addressBlock(text).length <= 80));
});
