import { useState } from 'react';
import { Link } from 'react-router';
import type { Agent } from '@berth/sdk';
import { createApiKey } from '../../queries/api-keys.ts';
import { scopesOf } from '../../rules/api-keys.ts';
import { PATHS } from '../../rules/paths.ts';
import { apiKeysText } from '../../text/api-keys.ts';
import { en } from '../../text/en.ts';
import { startText as text } from '../../text/start.ts';
import { useCall } from '../../ui/forms/index.ts';
import { Alert, Button, Snippets } from '../../ui/kit/index.ts';
import { useSandboxInView } from '../sandboxes/in-view.tsx';
import css from './start.module.css';

const KEY_DAYS = 90;
const KEY = { name: text.keyName, scopes: scopesOf('run', []), expiresInDays: KEY_DAYS };

/** The key is in the memory of this step alone. */
export function CodeStep({ command }: { command: string }) {
  const { sandbox, orgId, refusalOf } = useSandboxInView();
  const { id: sandboxId, projectId } = sandbox;
  const call = useCall();
  const [apiKey, setApiKey] = useState<string>();
  const body = { agent: sandbox.agent as Agent, projectId, machineSize: 'small' } as const;
  return (
    <div className={css.code}>
      <Snippets
        apiKey={apiKey}
        calls={[
          { name: text.run, call: { route: 'execInSandbox', path: { sandboxId }, body: { command } } },
          { name: en.create.title, call: { route: 'createSandbox', path: { orgId }, body } },
        ]}
      />
      <Alert title={apiKeysText.createWords.failed} error={call.error}>
        <p>
          {text.keyLost}
          <Link to={PATHS.apiKeys(orgId)}>{apiKeysText.title}</Link>
        </p>
      </Alert>
      <output>{apiKey === undefined ? null : text.keyMade(KEY_DAYS)}</output>
      <p>
        <Button
          reason={apiKey === undefined ? refusalOf('api_keys.manage') : text.keyIsMade}
          busy={call.isPending}
          onClick={() =>
            call.run(
              () => createApiKey(orgId, KEY),
              ({ token }) => setApiKey(token),
            )
          }
        >
          {text.key}
        </Button>
      </p>
    </div>
  );
}
