import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from 'react-router';
import type { api } from '@berth/sdk';
import { createdQuery } from '../../queries/activity.ts';
import { projectsQuery } from '../../queries/orgs.ts';
import { createSandbox } from '../../queries/sandboxes.ts';
import { stagesOf } from '../../rules/first-run.ts';
import { PATHS } from '../../rules/paths.ts';
import { isMoving } from '../../rules/status.ts';
import { activityText } from '../../text/activity.ts';
import { en } from '../../text/en.ts';
import { startText as text } from '../../text/start.ts';
import { useCall } from '../../ui/forms/index.ts';
import { Alert, Button, Status, Untrusted, useSeconds } from '../../ui/kit/index.ts';
import { Loaded, useOrgInView } from '../frame/content.tsx';
import css from './start.module.css';

interface CreateStepProps {
  sandbox: api.Sandbox | undefined;
  /** Activity of the sandbox. */
  entries: readonly api.ActivityEntry[];
  /** Id of the entry of the create before. */
  after: string | null;
  onCreated: (sandbox: api.Sandbox) => void;
}

export function CreateStep({ sandbox, entries, after, onCreated }: CreateStepProps) {
  const { orgId } = useOrgInView();
  const projects = useQuery(projectsQuery(orgId));
  if (sandbox !== undefined && sandbox.status !== 'failed') {
    return (
      <>
        <p className={css.line}>
          <Link to={PATHS.sandbox(sandbox.id)}>
            <Untrusted text={sandbox.name} />
          </Link>
          <Status status={sandbox.status} />
          {isMoving(sandbox) ? <Elapsed since={sandbox.statusChangedAt} /> : null}
        </p>
        <Stages entries={entries} />
      </>
    );
  }
  return (
    <Loaded query={projects} rows={2}>
      {([project]) => (
        <>
          {sandbox === undefined ? null : (
            <Alert title={en.sandbox.failed}>
              <p>
                <Untrusted text={sandbox.statusReason?.message ?? ''} />
              </p>
            </Alert>
          )}
          <Create project={project} after={after} onCreated={onCreated} />
        </>
      )}
    </Loaded>
  );
}

interface CreateProps extends Pick<CreateStepProps, 'after' | 'onCreated'> {
  project: api.Project | undefined;
}

function Create({ project, after, onCreated }: CreateProps) {
  const { orgId, refusalOf } = useOrgInView();
  const queries = useQueryClient();
  const call = useCall();
  const send = (projectId: string): void => {
    const body = { agent: 'agent_one', machineSize: 'small', projectId } as const;
    // Tabs that show the same send the same key: the service creates one sandbox.
    const created = createSandbox(orgId, `start-${after ?? 'none'}`, body);
    const refresh = () => queries.invalidateQueries({ queryKey: createdQuery(orgId).queryKey });
    call.run(() => created.finally(() => void refresh()), onCreated);
  };
  return (
    <>
      <Alert title={en.create.failed} error={call.error} />
      {project === undefined ? null : (
        <p>
          {text.createHint} <Untrusted text={project.name} />.
        </p>
      )}
      <p className={css.line}>
        <Button
          kind="primary"
          reason={refusalOf('sandbox.create') ?? (project === undefined ? en.create.noProject : null)}
          busy={call.isPending}
          onClick={() => (project === undefined ? undefined : send(project.id))}
        >
          {text.create}
        </Button>
        {call.isPending ? <Elapsed /> : null}
      </p>
    </>
  );
}

function Stages({ entries }: Pick<CreateStepProps, 'entries'>) {
  return (
    <dl className={css.stages} aria-label={text.stages}>
      {stagesOf(entries).map(({ kind, ms }) => (
        <div key={kind}>
          <dt>{activityText.kind(kind)}</dt>
          <dd>{text.after(ms)}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Seconds since a time, or since it is shown. */
function Elapsed({ since }: { since?: string }) {
  return <span className={css.quiet}>{text.elapsed(useSeconds(since))}</span>;
}
