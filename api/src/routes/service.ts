// Wire format of the service's description.
import { AGENT_LABELS } from '@berth/contract/agents/sessions.ts';
import { agent } from '@berth/contract/sandboxes/fields.ts';
import { getService } from '@berth/contract/service.ts';
import { bind } from '../call/bind.ts';
import { VERSION } from '../services/context/version.ts';

export const serviceRoutes = [
  bind(getService, ({ settings, payments }) => {
    const { publicUrl, previewUrl, consoleFolder, signUp, modelEndpoints } = settings;
    return Promise.resolve({
      version: VERSION,
      publicUrl,
      previewUrl,
      agents: agent.options.map((id) => ({ id, label: AGENT_LABELS[id] })),
      features: {
        console: consoleFolder !== null,
        payments: payments !== null,
        openSignUp: signUp === 'open',
        modelEndpoints: Object.entries(modelEndpoints)
          .flatMap(([provider, urls]) => (urls.length === 0 ? [] : [provider]))
          .sort(),
      },
    });
  }),
];
