// Cursors and page queries: round trips, refusals, and complete paging.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIST_LIMIT } from '@berth/contract/route/limits.ts';
import fc from 'fast-check';
import {
  readCursor,
  readInPages,
  readPageQuery,
  writeCursor,
  type PagedList,
  type PageRequest,
  type Place,
  type Slice,
} from '../../src/rules/page.ts';

const REFUSED = {
  code: 'invalid_request',
  message: 'query.after must be the nextCursor of an earlier page of this list',
};
const LISTS: PagedList[] = ['agentTokens', 'apiKeys', 'invitations', 'members', 'projects', 'sandboxes'];

const instant = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
const plain = { noNullPrototype: true };
const place = fc.record({ atMicroseconds: instant, tie: fc.stringMatching(/^[\w-]{1,100}$/) }, plain);
const numbered = fc.record(
  { atMicroseconds: instant, tie: fc.bigInt({ min: 0n, max: 10n ** 18n - 1n }).map(String) },
  plain,
);

test('a cursor decodes to its position in its own list only, and fits the query', () => {
  fc.assert(
    fc.property(place, fc.constantFrom(...LISTS), fc.constantFrom(...LISTS), (at, list, other) => {
      const cursor = writeCursor(list, at);
      assert.match(cursor, /^[\w-]{1,200}$/);
      assert.deepEqual(readCursor(list, cursor), at);
      if (other !== list) assert.throws(() => readCursor(other, cursor), REFUSED);
      assert.throws(() => readCursor('activity', cursor), REFUSED);
    }),
  );
  for (const list of ['activity', 'activityExport'] as const)
    fc.assert(fc.property(numbered, (at) => assert.deepEqual(readCursor(list, writeCursor(list, at)), at)));
});

test('text that is no cursor is refused by name', () => {
  const good = writeCursor('sandboxes', { atMicroseconds: 1_790_000_000_000_000, tie: 'sbx_a' });
  const made = (text: string): string => Buffer.from(text).toString('base64url');
  for (const wrong of [
    '',
    'x',
    '%00',
    `${good}=`,
    ` ${good}`,
    good.slice(0, -2),
    made('sandboxes.1.'),
    made('sandboxes..sbx_a'),
    made('sandboxes.01.sbx_a'),
    made('sandboxes.-1.sbx_a'),
    made('sandboxes.9999999999999999.sbx_a'),
    made('sandboxes.1.sbx_a\0'),
    made('sandboxes.1.sbx_a.b'),
    made("sandboxes.1.sbx_a'--"),
    made('{"at":1}'),
  ])
    assert.throws(() => readCursor('sandboxes', wrong), REFUSED, wrong);

  for (const tie of ['act_a', '-1', '1e3', '9999999999999999999', ''])
    assert.throws(() => readCursor('activity', made(`activity.1.${tie}`)), REFUSED, tie);

  fc.assert(fc.property(fc.string(), (text) => assert.throws(() => readCursor('apiKeys', text), REFUSED)));
});

test('without limit and after the whole list is requested; after alone means the largest page', () => {
  assert.equal(readPageQuery('projects', {}), null);
  assert.deepEqual(readPageQuery('projects', { limit: 7 }), { limit: 7, after: null });
  const after = { atMicroseconds: 5, tie: 'prj_a' };
  const cursor = writeCursor('projects', after);
  assert.deepEqual(readPageQuery('projects', { after: cursor }), { limit: LIST_LIMIT.max, after });
  assert.deepEqual(readPageQuery('projects', { limit: 1, after: cursor }), { limit: 1, after });
});

type Row = Place;

const order = (one: Row, other: Row): number =>
  other.atMicroseconds - one.atMicroseconds || (one.tie < other.tie ? 1 : one.tie > other.tie ? -1 : 0);

/** Models the database's page query: newest first. */
function select(rows: Row[], page: PageRequest | null): Promise<Slice<Row>> {
  const sorted = rows.toSorted(order);
  if (page === null) return Promise.resolve({ rows: sorted, next: null });
  const { after } = page;
  const rest = after === null ? sorted : sorted.filter((row) => order(after, row) < 0);
  const slice = rest.slice(0, page.limit);
  return Promise.resolve({ rows: slice, next: rest.length > page.limit ? (slice.at(-1) ?? null) : null });
}

// Few instants, so that many rows share one.
const row = fc.record(
  { atMicroseconds: fc.integer({ min: 0, max: 5 }), tie: fc.stringMatching(/^[a-c]{1,4}$/) },
  plain,
);
const distinct = { selector: (one: Row) => `${one.atMicroseconds} ${one.tie}` };

test('paging with any limit returns the whole list in order, despite insertions', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(row, { ...distinct, maxLength: 40 }),
      fc.array(row, { maxLength: 40 }),
      fc.integer({ min: 1, max: 45 }),
      async (atStart, later, limit) => {
        const present = [...atStart];
        const walked: Row[] = [];
        let after: string | undefined;
        for (;;) {
          const { rows, fields } = await readInPages('sandboxes', { limit, after }, (page) => select(present, page));
          walked.push(...rows);
          assert.equal(fields.hasMore, fields.nextCursor !== null);
          assert.ok(rows.length === limit || !fields.hasMore, 'a page is full unless it is the last');
          if (fields.nextCursor == null) break;
          after = fields.nextCursor;
          const come = later.pop();
          if (come !== undefined && !present.some((one) => order(one, come) === 0)) present.push(come);
        }
        const was = new Set(atStart);
        assert.deepEqual(
          walked.filter((one) => was.has(one)),
          atStart.toSorted(order),
        );
        assert.equal(new Set(walked).size, walked.length, 'none came twice');
        assert.deepEqual(walked, walked.toSorted(order));
      },
    ),
  );
});

test('a list requested whole has no page fields', async () => {
  const rows = [{ atMicroseconds: 1, tie: 'a' }];
  assert.deepEqual(await readInPages('members', {}, (page) => select(rows, page)), { rows, fields: {} });
  assert.deepEqual((await readInPages('members', { limit: 1 }, (page) => select(rows, page))).fields, {
    nextCursor: null,
    hasMore: false,
  });
});
