// Wire format of guardrails on machine hours.
import { updateProjectUsageGuardrails, updateUsageGuardrails } from '@berth/contract/usage/guardrails.ts';
import { updateOrgGuardrails, updateProjectGuardrails } from '../../services/usage/guardrails.ts';
import { bind } from '../../call/bind.ts';

export const usageGuardrailRoutes = [
  bind(updateUsageGuardrails, async (context, { actor, params, body }) => ({
    usageGuardrails: await updateOrgGuardrails(context, actor, params.orgId, body),
  })),
  bind(updateProjectUsageGuardrails, async (context, { actor, params, body }) => ({
    usageGuardrails: await updateProjectGuardrails(context, actor, params, body),
  })),
];
