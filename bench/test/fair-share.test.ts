import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fairShare } from '../neighbours/fair-share.ts';

test('the fair share of CPU follows vCPUs and cores', () => {
  // Alone each of two neighbours has a core; beside two more vCPUs each vCPU has half of one.
  assert.equal(fairShare('cpu', [2, 1, 1], 2), 0.5);
  // Cores for everybody.
  assert.equal(fairShare('cpu', [2, 1, 1], 8), 1);
  // Without the busy sandbox four neighbours already share two cores.
  assert.equal(fairShare('cpu', [4, 1, 1, 1, 1], 2), 0.5);
  assert.equal(fairShare('exec', [2, 1, 1], 2), 0.5);
});

test('disk and network are shared evenly by those that use them', () => {
  assert.equal(fairShare('disk', [2, 1, 1], 2), 2 / 3);
  assert.equal(fairShare('network', [2, 1], 64), 0.5);
});
