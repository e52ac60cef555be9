// Texts of refused actions: their remedy must be possible.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  SANDBOX_ACTION_RULES,
  sandboxStatus,
  statusesAllowing,
  type SandboxAction,
} from '@berth/contract/sandboxes/state.ts';
import { CodedError } from '../../../src/rules/coded-error.ts';
import { requireLegal } from '../../../src/rules/sandboxes/action.ts';

for (const action of Object.keys(SANDBOX_ACTION_RULES) as SandboxAction[]) {
  test(`a refused ${action} names the statuses that allow it, or another sandbox if it is too late`, () => {
    const refused = sandboxStatus.options.filter((status) => SANDBOX_ACTION_RULES[action][status] === 'refuse');
    for (const status of refused) {
      const isOver = status === 'deleted' || status === 'destroying';
      const remedy = isOver ? '. Create another sandbox' : `it must be ${statusesAllowing(action).join(' or ')}`;
      assert.throws(
        () => requireLegal(action, status),
        (error) =>
          error instanceof CodedError &&
          error.message.includes(`the sandbox is ${status} (`) &&
          error.message.endsWith(remedy),
        `${action} ${status}`,
      );
    }
  });
}
