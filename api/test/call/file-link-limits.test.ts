// Shares of the transfers by file links.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FILE_LINKS } from '@berth/contract/files/links.ts';
import { FileLinkLimits } from '../../src/call/file-link-limits.ts';

const { signal } = new AbortController();
const coded = (code: string) => (error: unknown) => (error as { code?: string }).code === code;
const limits = (): FileLinkLimits => new FileLinkLimits({ perMinute: 60, orgPerMinute: 600, now: () => 0 });

/** Takes places in sandboxes of their own until the refusal; returns their releases. */
async function fill(all: FileLinkLimits, orgId: string, linkId: string): Promise<(() => void)[]> {
  const taken: (() => void)[] = [];
  for (let index = 0; ; index += 1) {
    try {
      taken.push(await all.places.enter({ orgId, linkId, sandboxId: `${orgId} ${linkId} ${index}` }, signal));
    } catch (error) {
      assert.ok(coded('too_many_connections')(error), String(error));
      return taken;
    }
  }
}

test('a link takes half of the transfers that others of its org leave, and no org takes those of another', async () => {
  const all = limits();
  const one = await fill(all, 'org_a', 'one');
  const two = await fill(all, 'org_a', 'two');
  assert.deepEqual([one.length, two.length], [FILE_LINKS.transfersAtOnce / 2, FILE_LINKS.transfersAtOnce / 4]);
  assert.equal((await fill(all, 'org_b', 'one')).length, FILE_LINKS.transfersAtOnce / 2);
  for (const release of [...one, ...one]) release();
  assert.ok((await fill(all, 'org_a', 'three')).length > FILE_LINKS.transfersAtOnce / 4);
});

test('transfers of a sandbox wait for a place in order; one whose caller leaves gives its place back', async () => {
  const all = limits();
  const at = { orgId: 'org', linkId: 'link', sandboxId: 'sandbox' };
  const [first] = await Promise.all(
    Array.from({ length: FILE_LINKS.ofSandbox.atOnce }, () => all.places.enter(at, signal)),
  );
  const leaving = new AbortController();
  const left = all.places.enter(at, leaving.signal);
  const next = all.places.enter(at, signal);
  leaving.abort(new Error('gone'));
  await assert.rejects(left, /gone/);
  first?.();
  (await next)();
  const gone = AbortSignal.abort(new Error('gone before'));
  await assert.rejects(all.places.enter({ ...at, sandboxId: 'other' }, gone), /gone before/);
});

test("a plan's requests replace those of the configuration", () => {
  const all = limits();
  const plan = { requestsPerMinute: 1 } as Parameters<FileLinkLimits['countForOrg']>[1];
  all.countForOrg('org', plan);
  assert.throws(() => all.countForOrg('org', plan), coded('rate_limited'));
  all.countForOrg('other', null);
});
