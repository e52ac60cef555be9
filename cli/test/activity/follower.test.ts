// The follower returns each entry once, also entries inserted behind newer ones.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ActivityEntry } from '@berth/sdk';
import { ActivityFollower, type ReadPage } from '../../src/activity/follower.ts';

const PAGE = 5;
const OVERLAP_MS = 1_000;

/** An in-memory feed with the API's paging. */
class Feed {
  readonly entries: ActivityEntry[] = [];
  pages = 0;
  failNext = 0;
  #last = 0;

  /** @param atMs start of the transaction that writes the entry */
  add(atMs: number): string {
    const id = `act_${(this.#last += 1)}`;
    this.entries.push({ id, at: new Date(atMs).toISOString() } as ActivityEntry);
    return id;
  }

  readonly read: ReadPage = (after) => {
    this.pages += 1;
    if (this.failNext > 0 && (this.failNext -= 1) === 0) return Promise.reject(new Error('away'));
    const sorted = this.entries.toSorted((one, other) => other.at.localeCompare(one.at) || number(other) - number(one));
    const from = after === undefined ? 0 : sorted.findIndex(({ id }) => id === after) + 1;
    const activity = sorted.slice(from, from + PAGE);
    const hasMore = from + PAGE < sorted.length;
    return Promise.resolve({ activity, hasMore, nextCursor: hasMore ? (activity.at(-1)?.id ?? null) : null });
  };
}

const number = ({ id }: ActivityEntry): number => Number(id.slice(4));
const ids = (entries: readonly ActivityEntry[]): string[] => entries.map(({ id }) => id);

test('follow begins with the latest entries, oldest first, and does not repeat earlier ones', async () => {
  const feed = new Feed();
  for (let at = 0; at < 40; at += 1) feed.add(at * 10);
  const follower = new ActivityFollower(feed.read, OVERLAP_MS);
  assert.deepEqual(ids(await follower.start(3)), ['act_38', 'act_39', 'act_40']);
  assert.deepEqual(await follower.next(), []);
  const [one, two] = [feed.add(400), feed.add(400)];
  assert.deepEqual(ids(await follower.next()), [one, two]);
  assert.deepEqual(await follower.next(), []);
});

test('a late entry is printed after the newest, once', async () => {
  const feed = new Feed();
  feed.add(10_000);
  const follower = new ActivityFollower(feed.read, OVERLAP_MS);
  await follower.start(1);
  feed.add(10_900);
  assert.deepEqual(ids(await follower.next()), ['act_2']);
  const late = feed.add(10_100);
  assert.deepEqual(ids(await follower.next()), [late]);
  assert.deepEqual(await follower.next(), []);
});

test('follow reads all pages of a burst, follows an empty feed and retries a failed poll', async () => {
  const feed = new Feed();
  const follower = new ActivityFollower(feed.read, OVERLAP_MS);
  assert.deepEqual(await follower.start(3), []);
  const added = Array.from({ length: 3 * PAGE + 1 }, (_, at) => feed.add(1_000 + at));
  feed.failNext = 3;
  await assert.rejects(follower.next(), /away/);
  assert.deepEqual(ids(await follower.next()), added);
});

test('a quiet feed costs one page per poll, of any length', async () => {
  const feed = new Feed();
  for (let at = 0; at < 500; at += 1) feed.add(at * 1_000);
  const follower = new ActivityFollower(feed.read, OVERLAP_MS);
  await follower.start(1);
  feed.pages = 0;
  for (let looks = 0; looks < 10; looks += 1) assert.deepEqual(await follower.next(), []);
  assert.equal(feed.pages, 10);
});

test('entries within the overlap are shown once, in any order of arrival', async () => {
  let seed = 7;
  const random = (most: number): number => (seed = (seed * 48_271) % 2_147_483_647) % most;
  const feed = new Feed();
  const follower = new ActivityFollower(feed.read, OVERLAP_MS);
  const shown = ids(await follower.start(10));
  for (let now = 10_000; now < 40_000; now += random(300)) {
    for (let count = random(7); count > 0; count -= 1) feed.add(now - random(OVERLAP_MS / 2));
    shown.push(...ids(await follower.next()));
  }
  assert.deepEqual(shown.toSorted(), ids(feed.entries).toSorted());
});
