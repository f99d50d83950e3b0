"""The page's only style sheet; colours are named once for light and once for dark."""

from __future__ import annotations

STYLE = """
:root{color-scheme:light dark;--bg:#f7f7f5;--card:#fff;--ink:#1c2026;--soft:#59616c;--line:#dcdfe3;
--track:#e6e8eb;
--bar:#9db4ee;--tick:#2747b5;--base:#b4561c;--good:#13693d;--goodbg:#dcf3e5;--bad:#ad1f25;--badbg:#fce3e3;
--warn:#7d5300;--warnbg:#fbeecb}
@media (prefers-color-scheme:dark){:root{--bg:#13161b;--card:#1b1f26;--ink:#e7e9ec;--soft:#a2abb7;
--line:#313741;
--track:#2b313b;--bar:#3f5596;--tick:#b4c6ff;--base:#f0a06a;--good:#7fdca6;--goodbg:#16382a;--bad:#ff9d9d;
--badbg:#45191d;--warn:#f3cc72;--warnbg:#3d2f0c}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1180px;margin:0 auto;padding:28px 20px 64px}
h1{font-size:1.6rem;line-height:1.25;margin:0;display:flex;flex-wrap:wrap;gap:.5rem;align-items:center}
h2{font-size:1.15rem;margin:2.4rem 0 .5rem}h3{font-size:.95rem;margin:1.2rem 0 .3rem}
p{margin:.4rem 0}.soft{color:var(--soft)}.small,small{font-size:.82rem}abbr{text-decoration:none}
.lead{font-size:1.05rem;margin:.5rem 0 0}.lead b,.name{overflow-wrap:anywhere}
.word{display:inline-block;border-radius:99px;padding:.05rem .6rem;font-size:.82rem;font-weight:650;
white-space:nowrap;
background:var(--warnbg);color:var(--warn)}
h1 .word{font-size:1.15rem;padding:.15rem .9rem}
.word.pass{background:var(--goodbg);color:var(--good)}.word.fail,.word.invalid{background:var(--badbg);
color:var(--bad)}
.word.plain{background:none;color:var(--soft);padding-left:0}
dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(210px,1fr));gap:.6rem 1.4rem;
margin:1.2rem 0 0;
padding:1rem 1.2rem;background:var(--card);border:1px solid var(--line);border-radius:10px}
dt{color:var(--soft);font-size:.78rem}dd{margin:0;overflow-wrap:anywhere}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,250px),1fr));gap:.8rem}
.figure{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:.8rem 1rem}
.figure .v{font-size:1.7rem;line-height:1.2}.figure header{display:flex;justify-content:space-between;
gap:.5rem}
table{width:100%;border-collapse:collapse;background:var(--card);font-variant-numeric:tabular-nums}
.panel{background:var(--card);border:1px solid var(--line);border-radius:10px;overflow-x:auto}
.wide{overflow-x:auto}
caption{text-align:left;padding:.3rem 0;color:var(--soft);font-size:.82rem}
th,td{padding:.5rem .75rem;text-align:left;vertical-align:top;border-top:1px solid var(--line)}
thead th{border-top:0;color:var(--soft);font-size:.82rem;font-weight:600;white-space:nowrap}
tbody th{font-weight:600;overflow-wrap:anywhere;min-width:8rem}.num{text-align:right}
.v{font-weight:650}.ci{color:var(--soft);font-size:.78rem;white-space:nowrap}
.delta{font-size:.82rem;color:var(--soft);white-space:nowrap}.delta.worse{color:var(--bad);font-weight:600}
.delta.better{color:var(--good);font-weight:600}
svg.bar{display:block;width:100%;min-width:70px;height:9px;margin:.15rem 0}
.track{fill:var(--track)}.range{fill:var(--bar)}.tick{fill:var(--tick)}.base{fill:var(--base)}
.key{display:inline-block;width:18px;height:8px;border-radius:2px;vertical-align:middle;
margin:0 .3rem 0 .9rem}
.key.range{background:var(--bar);margin-left:0}.key.tick{width:4px;height:13px;background:var(--tick)}
.key.base{width:3px;height:13px;background:var(--base)}
details{background:var(--card);border:1px solid var(--line);border-radius:10px;margin:.6rem 0;
padding:0 1.1rem}
details[open]{padding-bottom:1rem}
summary{cursor:pointer;padding:.7rem 0;overflow-wrap:anywhere}summary .name{font-weight:650;margin:0 .4rem}
summary:focus-visible{outline:2px solid var(--tick);outline-offset:2px}
ul{padding-left:1.2rem;margin:.4rem 0}li{margin:.25rem 0;overflow-wrap:anywhere}
.facts td{overflow-wrap:anywhere}.facts td:first-child{width:32%}.new{font-weight:600}
.moved{white-space:nowrap}.broken{color:var(--bad);font-weight:650}p.moved{white-space:normal;font-weight:650}
.parts{display:grid;align-items:start;grid-template-columns:repeat(auto-fit,minmax(min(100%,260px),1fr));gap:.8rem}
.parts .panel p{padding:0 .75rem .3rem}
.tokens{display:flex;flex-wrap:wrap;gap:.25rem}
.tok{display:inline-flex;flex-direction:column;align-items:center;border-radius:5px;padding:.05rem .35rem}
.tok small{font-size:.72rem}
.tok.up{background:rgb(39 113 181/var(--w))}.tok.down{background:rgb(214 96 20/var(--w))}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0 0 .7rem}
code,pre{font:.88em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
@media (max-width:940px){main{padding:18px 14px 48px}h1{font-size:1.3rem}
.stack thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.stack,.stack tbody,.stack tr,.stack th,.stack td{display:block;width:auto}
.stack tr{border-top:1px solid var(--line);padding:.6rem .8rem}.stack tr:first-child{border-top:0}
.stack th,.stack td{border:0;padding:.15rem 0;text-align:left}.facts td:first-child{width:auto;
font-weight:600}
.stack tr{position:relative}.stack td.verdict{position:absolute;top:.6rem;right:.8rem}
.stack th{padding-right:8rem;min-width:0}
.stack td{display:flex;flex-wrap:wrap;gap:0 .5rem;align-items:baseline}
.stack td:has(svg)::after{content:"";order:8;flex-basis:100%}.stack svg.bar{order:9;max-width:440px}
dl{grid-template-columns:repeat(auto-fill,minmax(150px,1fr));padding:.8rem}
.stack td[data-of]::before{content:attr(data-of) " ";color:var(--soft);font-size:.82rem;font-weight:400}
.facts td[data-of]::before{display:inline-block;min-width:5.6rem}details{padding:0 .8rem}}
@media print{details{break-inside:avoid}}
""".strip()
