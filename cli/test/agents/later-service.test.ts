// `berth agent` and `berth activity` against a service of a later version: words that this program
// does not know are shown as sent.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ApiServer } from '../world/api-server.ts';
import { berth, type Ended } from '../world/berth.ts';

const AT = '2026-11-21T09:30:00.000Z';
const TURN = { turnId: 'trn_one', state: 'archived', reason: 'boredom', startedAt: AT, endedAt: AT };
const PENDING = {
  ...{ requestId: 'r-1', turnId: 'trn_one', kind: 'teleport', askedAt: AT, decisions: ['postpone'], title: 'Beam up' },
  ...{ detail: 'now', truncated: false, workingDirectory: null },
};
const SESSION = {
  ...{ id: 'ags_one', orgId: 'org_one', projectId: 'prj_one', sandboxId: 'sbx_one', endUserId: null },
  ...{ agent: 'agent_nine', agentLabel: 'Agent Nine', surface: 'hologram', sandboxStatus: 'dreaming' },
  ...{ bridgeState: 'hovering', bridgeVersion: 99, bridgeReason: 'moonlight' },
  ...{ turnId: 'trn_one', turnState: 'archived', turnReason: 'boredom', turnStartedAt: AT, turnEndedAt: AT },
  ...{ needsYou: true, waitingOn: 'oracle', pendingInput: PENDING },
  communication: { status: 'telepathic', capabilities: ['output', 'levitation'] },
  ...{ revision: '1', stateAt: AT, createdAt: AT, updatedAt: AT, recentTurns: [TURN] },
};
const REPLY = { seq: 1, turnId: 'trn_one', at: AT, text: 'hello', truncated: false, kind: 'song' };
const ENTRY = {
  ...{ id: 'act_one', at: AT, kind: 'agent_session_cloned', orgId: 'org_one', projectId: null, sandboxId: null },
  ...{ actor: { kind: 'oracle', id: null, userId: null }, subject: { kind: 'dream', id: 'drm_one' } },
  ...{ reason: null, details: { flavour: 'mint' }, requestId: null },
};

let api: ApiServer;
before(async () => {
  api = await ApiServer.start();
  api.json = ({ url = '' }) => {
    if (url.includes('/activity')) return { activity: [ENTRY], nextCursor: null, hasMore: false };
    if (url.includes('/output')) return { messages: [REPLY], nextCursor: 'c1', hasMore: false };
    if (url.includes('/agent-sessions?') || url.endsWith('/agent-sessions'))
      return { sessions: [SESSION], nextCursor: null, hasMore: false };
    return SESSION;
  };
});
after(() => api.close());

const run = (...words: string[]): Promise<Ended> => berth(words, { env: api.environment });

for (const [words, shown] of [
  [
    ['agent', 'ls'],
    ['Agent Nine', 'telepathic', 'archived (boredom)'],
  ],
  [
    ['agent', 'get', 'ags_one'],
    [
      'Agent Nine',
      'telepathic',
      'output, levitation',
      'hovering (moonlight)',
      'archived (boredom)',
      'oracle',
      'dreaming',
    ],
  ],
  [
    ['agent', 'get', 'ags_one'],
    ['"r-1" (teleport)', '│ request "r-1", teleport', '│ Beam up'],
  ],
  [
    ['agent', 'log', 'ags_one'],
    ['    hello', 'turn trn_one archived: boredom (boredom)'],
  ],
  [
    ['agent', 'log', 'ags_one', '--follow'],
    ['    hello', 'turn trn_one archived: boredom (boredom)'],
  ],
  [
    ['activity', '--org', 'org_one'],
    ['agent_session_cloned', 'drm_one', 'oracle', 'flavour=mint'],
  ],
  [
    ['agent', 'ls', '--json'],
    ['"agent_nine"', '"hologram"', '"levitation"', '"teleport"'],
  ],
  [['agent', 'log', 'ags_one', '--json'], ['"song"']],
  [
    ['activity', '--org', 'org_one', '--json'],
    ['"agent_session_cloned"', '"oracle"', '"dream"'],
  ],
] as const) {
  test(`berth ${words.join(' ')} shows ${shown.join(', ')} as sent`, async () => {
    const { code, stdout, stderr } = await run(...words);
    assert.equal(code, 0, stderr);
    for (const text of shown) assert.ok(`${stdout}${stderr}`.includes(text), `${text} in:\n${stdout}${stderr}`);
  });
}

test('an operation that the service does not offer is refused with its status as sent', async () => {
  const { code, stderr } = await run('agent', 'interrupt', 'ags_one');
  assert.equal(code, 1);
  assert.match(stderr, /^berth: cannot interrupt: the session does not support this now \(telepathic\)\n/);
});
