// First run of an org: a sandbox from its create to a wake. Its activity ticks the steps.
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useEffect, useState, type ReactNode } from 'react';
import { Link, useSearchParams } from 'react-router';
import type { api, BerthError } from '@berth/sdk';
import { activityQuery, createdQuery, runQuery } from '../../queries/activity.ts';
import { serve } from '../../queries/previews.ts';
import { sandboxQuery } from '../../queries/sandboxes.ts';
import { skippedName, stepsOf } from '../../rules/first-run.ts';
import { PATHS } from '../../rules/paths.ts';
import { store } from '../../session/stored.ts';
import { startText as text } from '../../text/start.ts';
import { CallButton } from '../../ui/forms/index.ts';
import { buttonClass, Page, Tick } from '../../ui/kit/index.ts';
import { Loaded, Permitted, useOrgInView } from '../frame/content.tsx';
import { Checklist } from '../orgs/checklist.tsx';
import { PreviewLink } from '../previews/link.tsx';
import { ActionButton } from '../sandboxes/action-button.tsx';
import { OpenTerminal } from '../sandboxes/actions.tsx';
import { InSandbox, useSandboxInView } from '../sandboxes/in-view.tsx';
import { CodeStep } from './code.tsx';
import { CreateStep } from './create.tsx';
import css from './start.module.css';

const COMMAND = 'uname -a; id';
const POLL_MS = 10_000;

export function StartPage() {
  const { orgId } = useOrgInView();
  const created = useQuery(createdQuery(orgId));
  return (
    <Page
      title={text.title}
      actions={
        <Link className={buttonClass()} to={PATHS.org(orgId)} onClick={() => store(skippedName(orgId), 'skipped')}>
          {text.skip}
        </Link>
      }
    >
      <p className={css.quiet}>{text.hint}</p>
      <Permitted permission="sandbox.read">
        <Loaded query={created}>{(entry) => <Run created={entry} />}</Loaded>
      </Permitted>
    </Page>
  );
}

/**
 * The sandbox is the newest, unless the address names another.
 * @param created the newest create of a sandbox in the org
 */
function Run({ created }: { created: api.ActivityEntry | null }) {
  const { orgId, org } = useOrgInView();
  const [search, setSearch] = useSearchParams();
  const newest = created?.sandboxId ?? null;
  const sandboxId = search.get('sandbox') ?? newest ?? '';
  useEffect(() => {
    // A create by somebody else must not change the subject of the steps.
    if (!search.has('sandbox') && newest !== null) setSearch({ sandbox: newest }, { replace: true });
  }, [search, newest, setSearch]);
  const enabled = sandboxId !== '';
  const query = useQuery({ ...sandboxQuery(sandboxId), enabled });
  const { status = 0 } = (query.error ?? {}) as Partial<BerthError>;
  const isAbsent = !enabled || status === 403 || status === 404;
  // Commands are in no live update.
  const activity = useInfiniteQuery({
    ...activityQuery(orgId, { sandboxId }),
    enabled,
    refetchInterval: POLL_MS,
  });
  const { data: older = [] } = useQuery({ ...runQuery(orgId, sandboxId), enabled: activity.hasNextPage });
  const entries = [...(activity.data ?? []), ...older];
  const done = stepsOf(entries);
  return (
    <Loaded query={isAbsent ? { ...query, data: null } : query}>
      {(found) => {
        const sandbox = found?.orgId === orgId && found.status !== 'deleted' ? found : undefined;
        const isMade = sandbox !== undefined && !['provisioning', 'failed'].includes(sandbox.status);
        const needed = (step: ReactNode): ReactNode =>
          sandbox === undefined ? (
            <p className={css.quiet}>{text.needsSandbox}</p>
          ) : (
            <InSandbox sandbox={sandbox}>{step}</InSandbox>
          );
        return (
          <ol className={css.steps}>
            <Step name={text.steps.create} done={isMade}>
              <CreateStep
                {...{ sandbox, entries }}
                after={created?.id ?? null}
                onCreated={({ id }) => setSearch({ sandbox: id }, { replace: true })}
              />
            </Step>
            <Step name={text.steps.terminal} done={done.terminal}>
              {needed(
                <>
                  <p>
                    {text.typed} <code>{COMMAND}</code>
                  </p>
                  <OpenTerminal typed={COMMAND} />
                </>,
              )}
            </Step>
            <Step name={text.steps.code} done={done.code}>
              {needed(<CodeStep command={COMMAND} />)}
            </Step>
            <Step name={text.steps.serve} done={done.serve}>
              {needed(<ServeStep />)}
            </Step>
            <Step name={text.steps.sleep} done={done.sleep}>
              {needed(
                <>
                  <p>{text.sleepHint}</p>
                  <div className={css.line}>
                    <ActionButton action="sleep" />
                    <ActionButton action="wake" />
                  </div>
                </>,
              )}
            </Step>
            <Step name={text.steps.next}>
              {org === undefined ? null : <Checklist org={org} />}
              <a href="/docs">{text.docs}</a>
            </Step>
          </ol>
        );
      }}
    </Loaded>
  );
}

/** @param done absent: nothing ticks the step */
function Step({ name, done, children }: { name: string; done?: boolean; children: ReactNode }) {
  return (
    <li>
      <div className={css.head}>
        <h2>{name}</h2>
        {done === undefined ? null : <Tick done={done} />}
      </div>
      {children}
    </li>
  );
}

const PORT = 3_000;
/** Leaves the command's session: the server outlives the call. */
const SERVE_COMMAND = `python3 --version && (setsid python3 -m http.server ${PORT} >/dev/null 2>&1 &)`;
/** Ends when the server accepts connections, or after 20 s. */
const WAIT = `timeout 20 bash -c 'until (: </dev/tcp/127.0.0.1/${PORT}) 2>/dev/null; do sleep 0.2; done'`;

function ServeStep() {
  const { sandbox, refusalOf, whyNot } = useSandboxInView();
  const [preview, setPreview] = useState<api.Preview | null>(null);
  return (
    <div className={css.code}>
      <p>
        {text.serveHint} <code>{SERVE_COMMAND}</code>
      </p>
      <output>{preview === null ? null : <PreviewLink preview={preview} refusal={null} />}</output>
      <div className={css.line}>
        <CallButton
          reason={refusalOf('sandbox.preview') ?? whyNot('exec')}
          failed={text.serveFailed}
          run={() => serve(sandbox.id, `${SERVE_COMMAND} && ${WAIT}`, PORT)}
          onDone={setPreview}
        >
          {text.serve}
        </CallButton>
      </div>
    </div>
  );
}
