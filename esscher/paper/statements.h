// The sections of the report, one file each (lemma_2_1.cc, ...).
#pragma once

#include "esscher/paper/section.h"

namespace esscher::paper {

Section lemma_2_1();
Section almost_sure();
Section prop_3_1();
Section prop_3_4();
Section stability();
Section theorem_4_3();
Section theorem_5_1();
Section transfer();
Section experiment();

}  // namespace esscher::paper
