// Wire format of environment variables of sandboxes.
import { listVariables, replaceVariables, updateVariables } from '@berth/contract/sandboxes/variables.ts';
import { bind } from '../../call/bind.ts';
import * as variables from '../../services/sandboxes/variables.ts';

export const variableRoutes = [
  bind(listVariables, async (context, { params }) => ({
    variables: await variables.listVariables(context, params.sandboxId),
  })),
  bind(replaceVariables, async (context, { actor, params, body }) => ({
    variables: await variables.changeVariables(context, actor, params.sandboxId, {
      changes: body.variables,
      replaces: true,
    }),
  })),
  bind(updateVariables, async (context, { actor, params, body }) => ({
    variables: await variables.changeVariables(context, actor, params.sandboxId, {
      changes: body.variables,
      replaces: false,
    }),
  })),
];
