// Parsers of option values, and choices that match the contract.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { machineSize, profile } from '@berth/contract/sandboxes/machine-sizes.ts';
import { previewAudience } from '@berth/contract/previews/previews.ts';
import { agent, persistencePolicy } from '@berth/contract/sandboxes/fields.ts';
import { sandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { createSandboxBody } from '@berth/contract/sandboxes/sandboxes.ts';
import { previewGroup } from '../../src/previews/spec.ts';
import { sandboxOptions } from '../../src/sandboxes/options.ts';
import { durationSeconds, textOf } from '../../src/program/option-values.ts';
import { statusStyle } from '../../src/sandboxes/view.ts';

test('a duration is seconds or numbers with units, within its bounds', () => {
  const parse = durationSeconds(60, 2_592_000);
  for (const [typed, seconds] of [
    ['60', 60],
    ['90s', 90],
    ['45m', 2_700],
    ['45min', 2_700],
    ['2h', 7_200],
    ['1h30m', 5_400],
    ['7d', 604_800],
    ['1w', 604_800],
    ['30d', 2_592_000],
  ] as const)
    assert.equal(parse(typed), seconds, typed);

  for (const typed of ['', '59', '31d', '-1', '1.5h', '2 h', 'h', '1y', '1e3', '999999999d', '٣', '2h ']) {
    assert.throws(
      () => parse(typed),
      /It must be a number of seconds or a duration such as 45m, 2h or 7d, from 60 s to 2592000 s \(30 d\)\./,
      typed,
    );
  }
});

test('the examples of a duration lie within its bounds', () => {
  for (const [least, most, examples] of [
    [60, 86_400, '45m or 2h'],
    [1, 3_600, '45m'],
    [1, 60, '1s'],
    [60, 2_592_000, '45m, 2h or 7d'],
  ] as const)
    assert.throws(() => durationSeconds(least, most)('none'), new RegExp(`such as ${examples}, from ${least} s to`));
});

test('a text is limited in length', () => {
  assert.equal(textOf(1, 3)('abc'), 'abc');
  for (const typed of ['', 'abcd']) assert.throws(() => textOf(1, 3)(typed), /It must have 1 to 3 characters/);
});

test('the values that commands offer are those of the contract', () => {
  const choices = (flags: string): readonly string[] | undefined =>
    sandboxOptions.find((option) => option.flags.startsWith(flags))?.choices;
  assert.deepEqual(choices('--agent'), agent.options);
  assert.deepEqual(choices('--sandbox-profile'), profile.options);
  assert.deepEqual(choices('--size'), machineSize.options);
  assert.deepEqual(choices('--persistence-policy'), persistencePolicy.options);
  assert.deepEqual(choices('--mode'), ['persistent', 'ephemeral']);
  const audience = previewGroup.commands[0]?.options?.find(({ flags }) => flags.startsWith('--audience'));
  assert.deepEqual(audience?.choices, previewAudience.options);
});

test('every field of a create has its option', () => {
  const named: Readonly<Record<string, string>> = {
    projectId: '',
    // `berth sandbox ensure`.
    getOrCreate: '',
    profile: '--sandbox-profile',
    machineSize: '--size',
    sshPublicKey: '--ssh-key',
    endUserId: '--end-user',
  };
  for (const field of Object.keys(createSandboxBody.shape)) {
    const flag = named[field] ?? `--${field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    assert.ok(
      sandboxOptions.some(({ flags }) => flags.startsWith(flag)),
      field,
    );
  }
});

test('every status has its colour, except unknown ones', () => {
  const plain = sandboxStatus.options.filter((status) => statusStyle(status) === undefined);
  assert.deepEqual(plain, []);
  assert.equal(statusStyle('failed'), 'red');
});
