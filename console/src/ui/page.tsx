// Frame of a page: document title, heading that takes the focus after a navigation, actions.
import { useEffect, useId, useRef, type ReactNode } from 'react';
import { visibleText } from '../rules/visible-text.ts';
import { en } from '../text/en.ts';
import { DialogHost } from './dialog-host.tsx';
import { Untrusted } from './untrusted.tsx';
import css from './page.module.css';

const shown = { page: '', waiting: 0 };

/** Sets a part of the document's title: the page, or the number of agents that wait. */
export function setTitle(part: Partial<typeof shown>): void {
  const { page, waiting } = Object.assign(shown, part);
  document.title = waiting === 0 ? page : `(${waiting}) ${page}`;
}

interface PageProps {
  title: string;
  /** Part of the page's subject, for the document's title. */
  part?: string | null;
  /** Above the heading. */
  crumbs?: ReactNode;
  /** Beside the heading. */
  beside?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}

export function Page({ title, part = null, crumbs, beside, actions, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    setTitle({ page: en.title(visibleText(title), part) });
  }, [title, part]);
  useEffect(() => {
    // Screen readers announce the new page by it.
    heading.current?.focus({ preventScroll: true });
  }, []);
  return (
    <DialogHost>
      {crumbs}
      <div className={css.head}>
        <div className={css.heading}>
          <h1 ref={heading} tabIndex={-1}>
            <Untrusted text={title} />
          </h1>
          {beside}
        </div>
        {actions === undefined ? null : <div className={css.actions}>{actions}</div>}
      </div>
      {children}
    </DialogHost>
  );
}

interface SectionProps {
  title: string;
  className?: string | undefined;
  children: ReactNode;
}

/** A part of a page below its own heading. */
export function Section({ title, className = css.section, children }: SectionProps) {
  const id = useId();
  return (
    <section className={className} aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  );
}
