// Places of the kernel's secrets, and their renewal in the memory of a process in QEMU's place.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kernelSecretsIn, renewKernelSecrets } from '../../../../src/vm/qemu/template/kernel-secrets.ts';
import { pretendMemory } from '../machine/pretended-memory.ts';

const IOMEM = '  1a000000-1b3fffff : Kernel code\n';
const symbol = (offset: number, name: string): string =>
  `${(0xffff_ffff_9000_0000n + BigInt(offset)).toString(16)} d ${name}\n`;
const SYMBOLS = [
  ...[symbol(0, '_text'), symbol(0, '_stext'), '--\n'],
  ...[symbol(0x200_0000, 'ptr_key'), symbol(0x200_0010, 'next'), '--\n'],
  ...[symbol(0x210_0000, 'inet_ehash_secret.3'), symbol(0x210_0004, 'done.2'), '--\n'],
  ...[symbol(0x220_0000, 'ts_secret'), symbol(0x220_0010, 'net_secret'), symbol(0x220_0020, 'next')],
];

test('secrets are found by their symbols, relative to the kernel’s place in memory', () => {
  assert.deepEqual(kernelSecretsIn(SYMBOLS.join('') + IOMEM), [
    { symbol: 'ptr_key', offset: 0x1c00_0000, sizeBytes: 16 },
    { symbol: 'inet_ehash_secret', offset: 0x1c10_0000, sizeBytes: 4 },
    { symbol: 'ts_secret', offset: 0x1c20_0000, sizeBytes: 16 },
    { symbol: 'net_secret', offset: 0x1c20_0010, sizeBytes: 16 },
  ]);
});

for (const [what, output, message] of [
  ['without a required secret', SYMBOLS.slice(0, 9).join('') + IOMEM, /has no net_secret/],
  ['with hidden addresses', SYMBOLS.join('').replaceAll(/^\w{16}/gm, '0'.repeat(16)) + IOMEM, /where its kernel is/],
  ['without the place of the kernel', SYMBOLS.join(''), /where its kernel is/],
  ['with a secret elsewhere', SYMBOLS.join('') + IOMEM.replace('1a', '7a'), /ptr_key is not a secret in the template/],
  ['with a shorter secret', SYMBOLS.join('').replace('00020 d', '0001c d') + IOMEM, /has no net_secret/],
] as const) {
  test(`a guest ${what} makes no template`, () => {
    assert.throws(() => kernelSecretsIn(output), message);
  });
}

test('each renewal writes new secrets at their places, and leaves the memory around them', async (context) => {
  const { qemu, process, read } = await pretendMemory(context);
  const secrets = [
    { symbol: 'net_secret', offset: 64, sizeBytes: 16 },
    { symbol: 'inet_ehash_secret', offset: 4_094, sizeBytes: 4 },
  ];
  const seen = new Set<string>();
  for (let renewal = 0; renewal < 8; renewal += 1) {
    await renewKernelSecrets({ process, qmp: qemu.qmp, signal: AbortSignal.timeout(60_000) }, secrets);
    const buffer = await read(8_192);
    for (const { offset, sizeBytes } of secrets) {
      seen.add(buffer.toString('hex', offset, offset + sizeBytes));
      buffer.fill(0, offset, offset + sizeBytes);
    }
    assert.ok(buffer.every((byte) => byte === 0));
  }
  assert.equal(seen.size, 16);
});
