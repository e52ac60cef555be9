// The checks in the guest accept exactly what the schemas of the wire accept.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newSecretKey, sealSecret, type SealedSecret } from '../../src/clones/seal.ts';
import { guestClone } from '@berth/protocol/calls/clones.ts';
import { guestExecRequest } from '@berth/protocol/calls/exec.ts';
import { guestIdentity, guestSize, guestWake } from '@berth/protocol/calls/identity.ts';
import * as fc from 'fast-check';
import type { z } from 'zod';
import { GUEST_WIRE } from '@berth/protocol/calls/wire.ts';
import { BodyRefused, checkValue } from '../../src/access/checks.ts';
import { makeClone } from '../clones/calls.ts';
import { makeIdentity, makeWake } from '../daemon.ts';

const check =
  (name: string) =>
  (value: unknown): unknown =>
    checkValue(GUEST_WIRE.find((call) => call.name === name)?.schemas.body ?? {}, value, 'the body');
const [checkClone, checkExecRequest, checkIdentity] = [check('clone'), check('exec'), check('identity')];
const [checkSize, checkWake] = [check('size'), check('wake')];

type Outcome = { accepted: true; value: unknown } | { accepted: false };

function outcome(check: (value: unknown) => unknown, value: unknown): Outcome {
  try {
    return { accepted: true, value: check(value) };
  } catch (error) {
    assert.ok(error instanceof BodyRefused, `threw ${String(error)}`);
    return { accepted: false };
  }
}

function schemaOutcome(schema: z.ZodType, value: unknown): Outcome {
  const parsed = schema.safeParse(value);
  return parsed.success ? { accepted: true, value: parsed.data } : { accepted: false };
}

const oddities = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    undefined,
    true,
    '',
    -1,
    0,
    0.5,
    1,
    64,
    65,
    127,
    128,
    600,
    601,
    2 ** 53,
    1e300,
    [],
    {},
    [1],
    [''],
  ),
  fc.integer(),
  fc.string(),
  fc.integer({ min: 0, max: 70 }).map((length) => 'a'.repeat(length)),
  fc.constantFrom(1_024, 1_025, 4_096, 4_097, 16_384, 16_385, 1_048_576, 1_048_577).map((length) => 'k'.repeat(length)),
  fc.array(fc.constantFrom('k', 'k'.repeat(16_384), 'k'.repeat(16_385)), { maxLength: 17 }),
  fc.uint8Array({ minLength: 63, maxLength: 65 }).map((bytes) => Buffer.from(bytes).toString('base64')),
  fc.stringMatching(/^[a-z0-9-]{1,64}\n?$/),
  fc.stringMatching(/^[0-9a-fA-F]{31,33}$/),
);

function changed(valid: Record<string, unknown>): fc.Arbitrary<unknown> {
  const field = fc.constantFrom(...Object.keys(valid), 'extra');
  return fc.oneof(
    { weight: 8, arbitrary: fc.tuple(field, oddities).map(([name, value]) => ({ ...valid, [name]: value })) },
    {
      weight: 1,
      arbitrary: field.map((name) => Object.fromEntries(Object.entries(valid).filter(([other]) => other !== name))),
    },
    { weight: 1, arbitrary: oddities },
  );
}

test('the exec body check agrees with the schema', () => {
  fc.assert(
    fc.property(changed({ command: 'true', timeoutSeconds: 5 }), (value) => {
      assert.deepEqual(outcome(checkExecRequest, value), schemaOutcome(guestExecRequest, value));
    }),
    { numRuns: 1_000 },
  );
});

test('the clone body check agrees with the schema, and no refusal quotes a value', () => {
  const valid: Record<string, unknown> = makeClone('https://git.example.test/a/b', {
    branch: 'main',
    credentials: sealSecret(newSecretKey().key, { username: 'u', token: 't' }),
  });
  const credentials = changed({ ...(valid['credentials'] as SealedSecret), box: 'watched-for' }).map((value) => ({
    ...valid,
    credentials: value,
  }));
  const urls = fc
    .oneof(
      fc.webUrl({ withQueryParameters: true, withFragments: true }),
      fc.stringMatching(/^(https?|file|ssh):\/\/[a-z:@.\\ ]{0,9}[/?#]{0,2}[a-z@%\n ]{0,9}$/),
      fc.constantFrom(4_096, 4_097).map((length) => 'https://h/'.padEnd(length, 'x')),
    )
    .map((url) => ({ ...valid, url }));
  fc.assert(
    fc.property(fc.oneof(changed(valid), credentials, urls), (value) => {
      assert.deepEqual(outcome(checkClone, value), schemaOutcome(guestClone, value));
    }),
    { numRuns: 2_000 },
  );
  assert.throws(
    () => checkClone({ ...valid, credentials: { ...(valid['credentials'] as SealedSecret), box: ['watched-for'] } }),
    (error: Error) => !error.message.includes('watched-for'),
  );
});

test('the identity body check agrees with the schema', () => {
  const valid: Record<string, unknown> = makeIdentity();
  const key = changed({ privateKey: 'a', publicKey: 'b' }).map((sshHostKey) => ({ ...valid, sshHostKey }));
  fc.assert(
    fc.property(fc.oneof(changed(valid), key), (value) => {
      assert.deepEqual(outcome(checkIdentity, value), schemaOutcome(guestIdentity, value));
    }),
    { numRuns: 2_000 },
  );
});

for (const [name, check, schema, valid] of [
  ['wake', checkWake, guestWake, makeWake()],
  ['size', checkSize, guestSize, { vcpu: 2, memoryMib: 4_096, diskGib: 20 }],
] as const) {
  test(`the ${name} body check agrees with the schema`, () => {
    fc.assert(
      fc.property(changed(valid), (value) => {
        assert.deepEqual(outcome(check, value), schemaOutcome(schema, value));
      }),
      { numRuns: 1_000 },
    );
  });
}

test('valid bodies are accepted', () => {
  // Made once: they contain the time.
  const [wake, identity] = [makeWake(), makeIdentity()];
  assert.deepEqual(checkWake(wake), wake);
  assert.deepEqual(checkSize({ vcpu: 64, memoryMib: 128, diskGib: 1 }), { vcpu: 64, memoryMib: 128, diskGib: 1 });
  assert.deepEqual(checkIdentity(identity), identity);
  assert.deepEqual(checkExecRequest({ command: 'true', timeoutSeconds: 600 }), {
    command: 'true',
    timeoutSeconds: 600,
  });
});
