"""What is wrong and stops nothing by itself: of snapshots, and of what a pass observes."""

from __future__ import annotations

from typing import Final

from capacity.domain.reasons.word import Word, table

PROBLEMS: Final = table(
    (
        Word(
            code="cycle",
            title="Scopes in a circle",
            sentence="Scopes are their own ancestors; limits bind, guarantees do not.",
        ),
        Word(
            code="unknown_parent",
            title="Parent does not exist",
            sentence="A scope names a parent that does not exist; that parent is left out.",
        ),
        Word(
            code="assumed_funding",
            title="Funding parent assumed",
            sentence="A scope has several parents and none is marked as the one that funds it; the first is taken.",
        ),
        Word(
            code="limit_below_guarantee",
            title="Limit below guarantee",
            sentence="A quota row has a limit below its own guarantee; the limit holds.",
        ),
        Word(code="cut", title="Guarantee cut by a limit", sentence="A limit above leaves less than the scope is guaranteed."),
        Word(code="scaled", title="Guarantee scaled down", sentence="More is guaranteed than there is; each got its share."),
        Word(
            code="guarantee_not_leaf",
            title="Guarantee on no hardware class",
            sentence="A guarantee names a class that no node offers and no profile takes; it is ignored.",
        ),
        Word(
            code="no_owner",
            title="No scope",
            sentence="A model belongs to no scope: it is counted against nobody and entitled to nothing.",
        ),
        Word(
            code="unknown_node",
            title="Node not known",
            sentence="A replica's nodes are not all listed, or are not as many as its profile takes; it still counts for quotas.",
        ),
        Word(
            code="hotspot",
            title="One hot replica",
            sentence="One replica has more than it was measured to serve while the total fits: look at the routing.",
        ),
        Word(
            code="disagree",
            title="Gateway and engine disagree",
            sentence="Gateway and engine count differently; the larger counts, and after a whole window nothing is taken back.",
        ),
        Word(
            code="unknown_push",
            title="Push for what is not here",
            sentence="A gateway pushes for replicas or models that the pool has never had; that counts for nobody.",
        ),
        Word(
            code="other_writer",
            title="Somebody else scales it",
            sentence="Another controller or a person changed the number of replicas after us; the model only gets advice now.",
        ),
        Word(
            code="node_silent",
            title="Node silent",
            sentence="A node has not reported; it offers no room and its replicas stay.",
        ),
        Word(
            code="node_lost",
            title="Node lost",
            sentence="A node has been silent for too long; its replicas are taken to be gone.",
        ),
        Word(
            code="engine_silent",
            title="Registered engine silent",
            sentence="A registered engine does not answer: it counts as unready until it does or is forgotten.",
        ),
        Word(
            code="copied_database",
            title="Copy of a database",
            sentence="Another installation wrote this pool's database; models are only advised until it is taken over.",
        ),
        Word(
            code="another_installation",
            title="Obeys another installation",
            sentence="Hosts of the pool obey another installation; models are only advised until it is taken over.",
        ),
        Word(
            code="older_backup",
            title="Older backup",
            sentence="Hosts have seen a later state than the database; models are only advised until it is taken over.",
        ),
        Word(
            code="removals_rest",
            title="Removals rest",
            sentence="The model missed its SLO after a removal, or its measurement was contradicted; nothing is taken back.",
        ),
        Word(
            code="optimistic",
            title="Measured too well",
            sentence="Live engines miss the SLO below 90 % of what was measured: it is outdated, and removals rest for a day.",
        ),
        Word(
            code="off_shape",
            title="Other requests than measured",
            sentence="Requests are more than twice as long or short as the measured ones, or find far more or less in the cache.",
        ),
        Word(code="invalid_row", title="Stored row not valid", sentence="A stored row breaks a rule and was left out."),
        Word(
            code="invalid_report",
            title="Report not believable",
            sentence="A host reports what cannot be; it is counted as none.",
        ),
        Word(
            code="reported_twice",
            title="One replica, two hosts",
            sentence="Two hosts report the same replica; it counts once, and what it holds on the other is not offered.",
        ),
        Word(
            code="shared_machine",
            title="Machine offered twice",
            sentence="Several node workers on one machine offer its cores or devices; they count once.",
        ),
        Word(
            code="unknown_product",
            title="Product not known",
            sentence="A host has a device that the table of products does not have; its class is made of its name.",
        ),
    )
)
