// Wire format of diagnostics.
import { getDiagnostics, type SandboxDiagnostics } from '@berth/contract/diagnostics/diagnostics.ts';
import { findDiagnostics } from '../../services/diagnostics/diagnostics.ts';
import { bind } from '../../call/bind.ts';
import { viewReason } from '../activity/activity.ts';
import { viewSandbox } from '../sandboxes/view.ts';

export const diagnosticsRoutes = [
  bind(getDiagnostics, async (context, { sandbox, signal }) => {
    const { cloneOutput, events, ...console } = await findDiagnostics(context, sandbox, signal);
    const { id, status, statusReason, statusChangedAt, wakesFrom, lastWake, createdAt, clone } = viewSandbox(sandbox);
    const lastStart: SandboxDiagnostics['lastStart'] = {
      kind: lastWake === null ? 'create' : lastWake.from === 'disk' ? 'boot' : 'wake',
      at: lastWake?.at ?? createdAt,
      reason: lastWake?.reason ?? null,
    };
    const { text: output = null, truncated = false } = cloneOutput ?? {};
    return {
      diagnostics: {
        sandboxId: id,
        status,
        failure: statusReason && { ...statusReason, at: statusChangedAt },
        wakesFrom,
        lastStart,
        clone: clone && { ...clone, output, truncated },
        ...console,
        events: events.map(({ at, kind, details }) => ({
          at: at.toISOString(),
          kind,
          reason: viewReason(details).reason,
        })),
      },
    };
  }),
];
